//! Types of expressions, and what fits where.

use std::{collections::BTreeMap, fmt, sync::Arc};

#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Known only when it is evaluated.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// The type of types.
    Kind,
    List(Arc<Type>, ListKind),
    Map(Arc<Type>, Arc<Type>),
    Object(Arc<ObjectType>),
    Optional(Arc<Type>),
    /// A type of Kubernetes' libraries, by name.
    Named(&'static str),
    /// A parameter of a function's signature.
    Param(usize),
}

/// How items of a list are told apart, which decides when two lists are equal and what their sum is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Arc<Vec<String>>),
}

/// An object with fields: by the name an expression uses, the name in JSON and the type.
#[derive(Debug, Default)]
pub(crate) struct ObjectType {
    pub fields: BTreeMap<String, (String, Type)>,
}

pub(super) const PARAMS: usize = 2;
pub(super) type Bound = [Option<Type>; PARAMS];

impl Type {
    pub(crate) fn list(of: Type) -> Type {
        Type::List(Arc::new(of), ListKind::Atomic)
    }

    pub(crate) fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(of: Type) -> Type {
        Type::Optional(Arc::new(of))
    }

    /// Reads one type of a signature: `list(A)`, `map(string,int)`, `kubernetes.URL`.
    pub(crate) fn parse(text: &'static str) -> Type {
        let inner = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
        if let Some(of) = inner("list(") {
            return Type::list(Type::parse(of));
        }
        if let Some(of) = inner("optional(") {
            return Type::optional(Type::parse(of));
        }
        if let Some((key, value)) = inner("map(").and_then(|of| of.split_once(',')) {
            return Type::map(Type::parse(key), Type::parse(value));
        }
        match text {
            "dyn" => Type::Dyn,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "type" => Type::Kind,
            "A" => Type::Param(0),
            "B" => Type::Param(1),
            name => Type::Named(name),
        }
    }

    /// Whether a value of type `found` may stand where this is asked for; parameters are bound on the way.
    pub(crate) fn takes(&self, found: &Type, bound: &mut Bound) -> bool {
        use self::Type as T;
        match (self, found) {
            (T::Param(index), found) => match bound[*index].clone() {
                None => {
                    bound[*index] = Some(found.clone());
                    true
                }
                Some(T::Dyn) => true,
                Some(before) if before.takes(found, bound) => true,
                // The wider of the two wins: null fits an object and not the other way round.
                Some(before) if found.takes(&before, bound) => {
                    bound[*index] = Some(found.clone());
                    true
                }
                Some(_) => false,
            },
            (T::Dyn, _) | (_, T::Dyn) => true,
            (T::Null, T::Null)
            | (T::Bool, T::Bool)
            | (T::Int, T::Int)
            | (T::Uint, T::Uint)
            | (T::Double, T::Double)
            | (T::String, T::String) => true,
            (T::Bytes, T::Bytes) | (T::Timestamp, T::Timestamp) | (T::Duration, T::Duration) | (T::Kind, T::Kind) => {
                true
            }
            (T::Object(_) | T::Named(_) | T::Optional(_) | T::Timestamp | T::Duration, T::Null) => true,
            (T::List(a, _), T::List(b, _)) | (T::Optional(a), T::Optional(b)) => a.takes(b, bound),
            (T::Map(ka, va), T::Map(kb, vb)) => ka.takes(kb, bound) && va.takes(vb, bound),
            (T::Object(a), T::Object(b)) => Arc::ptr_eq(a, b),
            (T::Named(a), T::Named(b)) => a == b,
            _ => false,
        }
    }

    /// A type for both, if there is one.
    pub(crate) fn join(&self, other: &Type) -> Option<Type> {
        let none = &mut Bound::default();
        match (self, other) {
            (Type::Dyn, _) | (_, Type::Dyn) => Some(Type::Dyn),
            (a, b) if a.takes(b, none) => Some(a.clone()),
            (a, b) if b.takes(a, none) => Some(b.clone()),
            _ => None,
        }
    }

    /// The type with its parameters filled in; what nothing is known of is dynamic.
    pub(crate) fn fill(&self, bound: &Bound) -> Type {
        match self {
            Type::Param(index) => bound[*index].clone().unwrap_or(Type::Dyn),
            Type::List(of, kind) => Type::List(Arc::new(of.fill(bound)), kind.clone()),
            Type::Map(key, value) => Type::map(key.fill(bound), value.fill(bound)),
            Type::Optional(of) => Type::optional(of.fill(bound)),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Dyn => "dyn",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::Kind => "type",
            Type::Object(_) => "object",
            Type::Named(name) => name,
            Type::Param(index) => ["A", "B"].get(*index).unwrap_or(&"C"),
            Type::List(of, _) => return write!(f, "list({of})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Optional(of) => return write!(f, "optional_type({of})"),
        };
        f.write_str(name)
    }
}
