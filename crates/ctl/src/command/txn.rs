//! `txn`: a transaction read from standard input.

use std::io::BufRead;

use cli::{quote, unquote_prefix, value};
use client::{Compare, Op, Txn, pb::compare::CompareResult};

use super::{del, get, put};
use crate::{context::Context, failure::Failure, print::println, text::argify::argify};

/// Txn processes all the requests in one transaction
///
/// Reads three parts from standard input, each ended by an empty line: conditions such as `mod("key1") > "0"`
/// (also ver, create, value, lease), the requests (get, put, del) if all hold, and those if any does not.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: printf 'ver(\"k\") = \"0\"\\n\\nput k new\\n\\nget k\\n\\n' | lockgatectl txn")]
pub(crate) struct TxnArgs {
    /// Say which part comes next
    #[arg(short, long)]
    interactive: bool,
    #[arg(hide = true)]
    args: Vec<String>,
}

/// A request line.
#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_subcommand = true, infer_subcommands = true)]
enum Line {
    Get(get::GetArgs),
    Put(put::PutArgs),
    Del(del::DelArgs),
}

pub(crate) async fn run(context: &Context, args: TxnArgs) -> Result<(), Failure> {
    if !args.args.is_empty() {
        return Err(Failure::bad_args("txn command does not accept argument"));
    }
    let (client, style) = context.open().await?;
    let prompt = |text| if args.interactive { println(text) } else { Ok(()) };
    prompt("compares:")?;
    let compares: Result<Vec<Compare>, _> = block()?.iter().map(|line| compare(line)).collect();
    let txn = Txn::new().when(compares?);
    prompt("success requests (get, put, del):")?;
    let txn = txn.and_then(ops(block()?).await?);
    prompt("failure requests (get, put, del):")?;
    let txn = txn.or_else(ops(block()?).await?);
    style.show(&client.with_timeout(None).txn(txn).await?)
}

/// The lines up to the next empty one.
fn block() -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(Failure::invalid_input)?;
        if !line.ends_with('\n') {
            return Err(Failure::invalid_input("EOF"));
        }
        match line.trim() {
            "" => return Ok(lines),
            line => lines.push(line.to_owned()),
        }
    }
}

async fn ops(lines: Vec<String>) -> Result<Vec<Op>, Failure> {
    let mut ops = Vec::new();
    for line in &lines {
        ops.push(op(line).await?);
    }
    Ok(ops)
}

async fn op(line: &str) -> Result<Op, Failure> {
    let args = argify(line).ok_or_else(|| Failure::invalid_input("invalid syntax"))?;
    if args.len() < 2 {
        return Err(Failure::invalid_input(format!("invalid txn compare request: {line}")));
    }
    let parsed = crate::app::parse_line::<Line>(args);
    Ok(match parsed.map_err(|_| Failure::invalid_input(format!("invalid txn request: {line}")))? {
        Line::Get(args) => get::request(args)?.into(),
        Line::Put(args) => put::request(args)?.into(),
        Line::Del(args) => del::request(args).await?.into(),
    })
}

/// `target("key") op "value"`.
fn compare(line: &str) -> Result<Compare, Failure> {
    let Some((target, rest)) = line.split_once('(') else {
        return Err(Failure::invalid_input(format!("malformed comparison: {line}")));
    };
    let parts = Parts::scan(rest);
    let Parts { key: Some(key), op: Some(op), value: Some(value) } = parts else {
        let quoted = |part: Option<Vec<u8>>| quote(&part.unwrap_or_default());
        let (key, op, value) = (quoted(parts.key), parts.op.unwrap_or_default(), quoted(parts.value));
        return Err(Failure::invalid_input(format!("malformed comparison: {line}; got {target}({key}) {op} {value}")));
    };
    let result = match op {
        "=" => CompareResult::Equal,
        "!=" => CompareResult::NotEqual,
        ">" => CompareResult::Greater,
        "<" => CompareResult::Less,
        _ => return Err(Failure::invalid_input(format!("malformed comparison: {line} (unknown operator {op})"))),
    };
    let number = |radix| {
        let number = std::str::from_utf8(&value).ok().and_then(|text| value::int_radix(text, radix).ok());
        number.ok_or_else(|| Failure::invalid_input(format!("invalid txn compare request: {line}")))
    };
    Ok(match target {
        "ver" | "version" => Compare::version(key).compare(result, number(10)?),
        "c" | "create" => Compare::create_revision(key).compare(result, number(10)?),
        "m" | "mod" => Compare::mod_revision(key).compare(result, number(10)?),
        "val" | "value" => Compare::value(key).compare(result, value),
        "lease" => Compare::lease(key).compare(result, number(16)?),
        _ => return Err(Failure::invalid_input(format!("malformed comparison: {line} (unknown target {target})"))),
    })
}

/// What of `"key") op "value"` could be read, from the left.
#[derive(Default)]
struct Parts<'a> {
    key: Option<Vec<u8>>,
    op: Option<&'a str>,
    value: Option<Vec<u8>>,
}

impl<'a> Parts<'a> {
    fn scan(text: &'a str) -> Parts<'a> {
        let mut parts = Parts::default();
        let Some((key, rest)) = unquote_prefix(text.trim_start()) else { return parts };
        parts.key = Some(key);
        let Some(rest) = rest.strip_prefix(')').and_then(after_space) else { return parts };
        let (op, rest) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        if op.is_empty() {
            return parts;
        }
        parts.op = Some(op);
        parts.value = after_space(rest).and_then(unquote_prefix).map(|(value, _)| value);
        parts
    }
}

fn after_space(text: &str) -> Option<&str> {
    text.starts_with(char::is_whitespace).then(|| text.trim_start())
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(r#"mod("a") > 0"# => r#"malformed comparison: mod("a") > 0; got mod("a") > """#)]
    #[test_case(r#"mod("a")>"0""# => r#"malformed comparison: mod("a")>"0"; got mod("a")  """#)]
    #[test_case(r#"mod(a) > "0""# => r#"malformed comparison: mod(a) > "0"; got mod("")  """#)]
    #[test_case(r#"xmod("a") > "0""# => r#"malformed comparison: xmod("a") > "0" (unknown target xmod)"#)]
    #[test_case(r#"mod "a""# => r#"malformed comparison: mod "a""#)]
    #[test_case(r#"mod("a") > "x""# => r#"invalid txn compare request: mod("a") > "x""#)]
    #[test_case(r#"val("a") ? "x""# => r#"malformed comparison: val("a") ? "x" (unknown operator ?)"#)]
    fn what_is_wrong_with(line: &str) -> String {
        compare(line).unwrap_err().text().to_owned()
    }

    #[test]
    fn comparisons() {
        assert_eq!(compare(r#"ver("a") = "1""#).unwrap(), Compare::version("a").eq(1));
        assert_eq!(compare(r#"c("a b") != "-1""#).unwrap(), Compare::create_revision("a b").ne(-1));
        assert_eq!(compare(r#"value("a")   <   "x\x00" trailing"#).unwrap(), Compare::value("a").lt("x\0"));
        assert_eq!(compare(r#"lease("a") = "ff""#).unwrap(), Compare::lease("a").eq(255));
    }
}
