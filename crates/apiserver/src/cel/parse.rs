//! From words to a tree, by the precedence of operators.

use super::{
    ast::{Expr, Fault, Fold, FoldKind, Literal, Member, Node},
    lex::{Token, lex},
};

/// What an expression can begin with, in cel-go's words.
const EXPRESSION: &str =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// How high a tree may be, and how deep brackets may nest: every later step recurses no deeper than this.
pub(super) const DEPTH_MAX: usize = 100;

/// Binary operators, those that bind least first, with the names of their functions.
const BINARY: [&[(&str, &str)]; 5] = [
    &[("||", "_||_")],
    &[("&&", "_&&_")],
    &[("==", "_==_"), ("!=", "_!=_"), ("<=", "_<=_"), (">=", "_>=_"), ("<", "_<_"), (">", "_>_"), ("in", "@in")],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];

pub(super) fn parse(source: &str) -> Result<Expr, Fault> {
    let mut parser = Parser { tokens: lex(source)?, next: 0, depth: 0 };
    let expr = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected("the end of the expression")),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |(at, _)| *at)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Sign(sign) => (*sign).to_owned(),
            Token::Ident(name) => name.clone(),
            Token::Literal(_) => "a literal".to_owned(),
        };
        Fault::new(self.at(), format!("Syntax error: mismatched input '{found}' expecting {wanted}"))
    }

    /// A node, unless the tree would get too high.
    fn node(&self, at: usize, node: Node) -> Result<Expr, Fault> {
        let expr = Expr::new(at, node);
        if expr.depth > DEPTH_MAX { Err(too_deep(at)) } else { Ok(expr) }
    }

    fn expression(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep(self.at()));
        }
        let mut expr = self.binary(0)?;
        let at = self.at();
        if self.take("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.expression()?;
            expr = self.node(at, Node::Condition(Box::new([expr, yes, no])))?;
        }
        self.depth -= 1;
        Ok(expr)
    }

    /// Operators that bind at least as strongly as those of `level`, with what is between them.
    fn binary(&mut self, level: usize) -> Result<Expr, Fault> {
        let mut left = self.unary()?;
        loop {
            let at = self.at();
            let Token::Sign(sign) = *self.peek() else { return Ok(left) };
            let Some((strength, name)) = operator(sign).filter(|(strength, _)| *strength >= level) else {
                return Ok(left);
            };
            self.next += 1;
            let right = self.binary(strength + 1)?;
            left = self.join(at, name, left, right)?;
        }
    }

    /// Long chains of `&&` and `||` are one flat node each.
    fn join(&self, at: usize, name: &str, mut left: Expr, right: Expr) -> Result<Expr, Fault> {
        match (name, &mut left.node) {
            ("_&&_", Node::And(list)) | ("_||_", Node::Or(list)) => {
                left.depth = left.depth.max(right.depth + 1);
                list.push(right);
                if left.depth > DEPTH_MAX { Err(too_deep(at)) } else { Ok(left) }
            }
            ("_&&_", _) => self.node(at, Node::And(vec![left, right])),
            ("_||_", _) => self.node(at, Node::Or(vec![left, right])),
            _ => self.node(at, Node::Call(name.to_owned(), Member::No, vec![left, right])),
        }
    }

    /// An even number of signs cancels out.
    fn unary(&mut self) -> Result<Expr, Fault> {
        let at = self.at();
        for (sign, name) in [("!", "!_"), ("-", "-_")] {
            let mut count = 0;
            while self.take(sign) {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            if sign == "-"
                && count % 2 == 1
                && matches!(self.peek(), Token::Literal(Literal::Int(_) | Literal::Double(_)))
            {
                return self.negative(at);
            }
            let operand = self.member()?;
            let odd = count % 2 == 1;
            return if odd {
                self.node(at, Node::Call(name.to_owned(), Member::No, vec![operand]))
            } else {
                Ok(operand)
            };
        }
        self.member()
    }

    fn negative(&mut self, at: usize) -> Result<Expr, Fault> {
        if let Some((_, Token::Literal(literal))) = self.tokens.get_mut(self.next) {
            match literal {
                Literal::Int(value) => *value = value.wrapping_neg(),
                Literal::Double(value) => *value = -*value,
                _ => {}
            }
            let literal = Node::Literal(literal.clone());
            self.next += 1;
            let literal = self.node(at, literal)?;
            return self.suffixes(literal);
        }
        self.member()
    }

    fn member(&mut self) -> Result<Expr, Fault> {
        let primary = self.primary()?;
        self.suffixes(primary)
    }

    fn suffixes(&mut self, mut expr: Expr) -> Result<Expr, Fault> {
        loop {
            let at = self.at();
            if self.take(".") {
                let optional = self.take("?");
                let name = self.name()?;
                let open = self.at();
                expr = if !optional && self.take("(") {
                    let args = self.list(")")?;
                    self.member_call(open, expr, name, args)?
                } else {
                    self.node(at, Node::Select(Box::new(expr), name, optional))?
                };
            } else if self.take("[") {
                let optional = self.take("?");
                let index = self.expression()?;
                self.expect("]")?;
                expr = self.node(at, Node::Index(Box::new(expr), Box::new(index), optional))?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn name(&mut self) -> Result<String, Fault> {
        match self.peek() {
            Token::Ident(name) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("IDENTIFIER")),
        }
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let at = self.at();
        match self.peek().clone() {
            // 2^63 is an integer with a minus before it only.
            Token::Literal(Literal::Int(i64::MIN)) => Err(Fault::new(at, "invalid int literal")),
            Token::Literal(literal) => {
                self.next += 1;
                self.node(at, Node::Literal(literal))
            }
            Token::Ident(name) => {
                self.next += 1;
                let open = self.at();
                if self.take("(") {
                    let args = self.list(")")?;
                    return self.global_call(open, name, args);
                }
                if self.peek() == &Token::Sign("{") {
                    return Err(Fault::new(open, format!("undeclared reference to '{name}' (in container '')")));
                }
                self.node(at, Node::Ident(name))
            }
            Token::Sign("(") => {
                self.next += 1;
                let expr = self.expression()?;
                self.expect(")")?;
                Ok(expr)
            }
            Token::Sign("[") => {
                self.next += 1;
                self.list_literal(at)
            }
            Token::Sign("{") => {
                self.next += 1;
                self.map_literal(at)
            }
            // A name of the outermost container, which is the only one here.
            Token::Sign(".") => {
                self.next += 1;
                let name = self.name()?;
                self.node(at, Node::Ident(name))
            }
            _ => Err(self.unexpected(EXPRESSION)),
        }
    }

    fn list(&mut self, close: &str) -> Result<Vec<Expr>, Fault> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.expression()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn list_literal(&mut self, at: usize) -> Result<Expr, Fault> {
        let mut items = Vec::new();
        while !self.take("]") {
            let optional = self.take("?");
            items.push((self.expression()?, optional));
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        self.node(at, Node::List(items))
    }

    fn map_literal(&mut self, at: usize) -> Result<Expr, Fault> {
        let mut entries = Vec::new();
        while !self.take("}") {
            let optional = self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, optional));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        self.node(at, Node::Map(entries))
    }

    fn global_call(&mut self, at: usize, name: String, mut args: Vec<Expr>) -> Result<Expr, Fault> {
        if name == "has" && args.len() == 1 {
            return match args.remove(0) {
                Expr { node: Node::Select(operand, field, false), .. } => self.node(at, Node::Has(operand, field)),
                other => Err(Fault::new(other.at, "invalid argument to has() macro")),
            };
        }
        self.node(at, Node::Call(name, Member::No, args))
    }

    fn member_call(&mut self, at: usize, target: Expr, name: String, mut args: Vec<Expr>) -> Result<Expr, Fault> {
        let kind = match (name.as_str(), args.len()) {
            ("all", 2 | 3) => FoldKind::All,
            ("exists", 2 | 3) => FoldKind::Exists,
            ("exists_one" | "existsOne", 2 | 3) => FoldKind::ExistsOne,
            ("map", 2 | 3) | ("transformList", 3 | 4) => FoldKind::Map,
            ("filter", 2) => FoldKind::Filter,
            ("sortBy", 2) if matches!(target.node, Node::Literal(_) | Node::Map(_)) => {
                let known = "a list, identifier, comprehension, call or select expression";
                return Err(Fault::new(target.at, format!("sortBy can only be applied to {known}")));
            }
            ("sortBy", 2) => FoldKind::SortBy,
            ("transformMap", 3 | 4) => FoldKind::TransformMap,
            ("transformMapEntry", 3 | 4) => FoldKind::TransformEntry,
            ("optMap" | "optFlatMap", 2) => {
                let body = args.remove(1);
                let variable = variable(&args[0])?;
                return self.node(at, Node::OptionalMap(Box::new((target, variable, body)), name == "optFlatMap"));
            }
            _ => {
                args.insert(0, target);
                return self.node(at, Node::Call(name, Member::Yes, args));
            }
        };
        let fold = fold(kind, &name, target, args)?;
        self.node(at, Node::Fold(Box::new(fold)))
    }
}

/// How strongly an operator binds, and its function.
fn operator(sign: &str) -> Option<(usize, &'static str)> {
    let levels = BINARY.iter().enumerate();
    levels
        .flat_map(|(level, row)| row.iter().map(move |entry| (level, entry)))
        .find(|(_, entry)| entry.0 == sign)
        .map(|(level, entry)| (level, entry.1))
}

/// The parts of a macro call: one or two variables, a filter perhaps, and the body.
fn fold(kind: FoldKind, name: &str, range: Expr, mut args: Vec<Expr>) -> Result<Fold, Fault> {
    let first = variable(&args.remove(0))?;
    let two = name.starts_with("transform")
        || (matches!(kind, FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne) && args.len() == 2);
    let second = if two { Some(variable(&args.remove(0))?) } else { None };
    let filter = if args.len() == 2 { Some(args.remove(0)) } else { None };
    let Some(body) = args.pop() else { return Err(Fault::new(range.at, format!("invalid arguments of {name}()"))) };
    if second.as_ref() == Some(&first) {
        return Err(Fault::new(body.at, format!("duplicate variable name: {first}")));
    }
    Ok(Fold { kind, range, first, second, filter, body })
}

fn variable(expr: &Expr) -> Result<String, Fault> {
    match &expr.node {
        Node::Ident(name) => Ok(name.clone()),
        _ => Err(Fault::new(expr.at, "argument is not an identifier")),
    }
}

fn too_deep(at: usize) -> Fault {
    Fault::new(at, format!("expression recursion limit exceeded: {DEPTH_MAX}"))
}
