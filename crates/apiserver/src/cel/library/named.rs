//! Formats by name, for text that must be a label, a name, a date.

use super::{GLOBAL, MEMBER, Row, mismatch, url::Url};
use crate::{cel::value::Value, name, schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format(&'static str);

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

const FORMAT: &str = "kubernetes.NamedFormat";

pub(super) const ROWS: &[Row] = &[
    ("format.named", GLOBAL, "string", "optional(kubernetes.NamedFormat)", |args, _| match args {
        [Value::String(wanted)] => {
            let found = NAMES.iter().find(|name| **name == &**wanted);
            Ok(Value::Optional(found.map(|name| Box::new(Value::Format(Format(name))))))
        }
        _ => mismatch(),
    }),
    ("validate", MEMBER, "kubernetes.NamedFormat string", "optional(list(string))", |args, meter| match args {
        [Value::Format(format), Value::String(text)] => {
            meter.charge_text(text.len())?;
            let fault = format.fault(text);
            Ok(Value::Optional(fault.map(|fault| Box::new(Value::list(vec![Value::text(fault)])))))
        }
        _ => mismatch(),
    }),
    ("format.dns1123Label", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("dns1123Label")))),
    ("format.dns1123Subdomain", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("dns1123Subdomain")))),
    ("format.dns1035Label", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("dns1035Label")))),
    ("format.qualifiedName", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("qualifiedName")))),
    ("format.dns1123LabelPrefix", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("dns1123LabelPrefix")))),
    ("format.dns1123SubdomainPrefix", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("dns1123SubdomainPrefix")))),
    ("format.dns1035LabelPrefix", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("dns1035LabelPrefix")))),
    ("format.labelValue", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("labelValue")))),
    ("format.uri", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("uri")))),
    ("format.uuid", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("uuid")))),
    ("format.byte", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("byte")))),
    ("format.date", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("date")))),
    ("format.datetime", GLOBAL, "", FORMAT, |_, _| Ok(Value::Format(Format("datetime")))),
];

impl Format {
    /// Why the text does not have the format. A prefix may end in a dash, as something follows it.
    fn fault(self, text: &str) -> Option<String> {
        let prefix = text.strip_suffix('-').map(|rest| format!("{rest}a")).unwrap_or_else(|| text.to_owned());
        let checked = match self.0 {
            "dns1123Label" => name::check_label(text),
            "dns1123LabelPrefix" => name::check_label(&prefix),
            "dns1123Subdomain" => name::check_subdomain(text),
            "dns1123SubdomainPrefix" => name::check_subdomain(&prefix),
            "dns1035Label" => name::check_dns1035(text),
            "dns1035LabelPrefix" => name::check_dns1035(&prefix),
            "qualifiedName" => name::check_qualified(text),
            "labelValue" => name::check_label_value(text),
            "uri" => Url::parse(text).map(drop).map_err(|why| format!("parse {text:?}: {why}")),
            "uuid" if !schema::fits("uuid", text) => Err("does not match the UUID format".to_owned()),
            "byte" if !schema::fits("byte", text) => Err("invalid base64".to_owned()),
            "date" if !schema::fits("date", text) => Err("invalid date".to_owned()),
            "datetime" if !schema::fits("date-time", text) => Err("invalid datetime".to_owned()),
            _ => Ok(()),
        };
        checked.err()
    }
}
