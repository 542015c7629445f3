//! Python pickles as JSON. A pickle is a program: its opcodes build values on a stack, and nothing is imported or
//! called. An own reader, because the crates expand shared parts of a pickle into every copy, and a few bytes may
//! request more copies than fit in memory.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::tree::{TOO_MANY, VALUES, bytes_as_text, key_text, real};
use crate::memory::json::MAX_DEPTH;

/// Most opcodes to execute: a few per value.
const OPCODES: usize = 4 * VALUES;
/// Most bytes of all texts, counting repeats.
const BYTES: usize = 64 << 20;

type Shared<T> = Rc<Contents<T>>;

/// A value under construction; the memo shares containers.
#[derive(Clone)]
enum Node {
    Leaf(Rc<Value>),
    List(Shared<Vec<Node>>),
    Dict(Shared<Vec<(Node, Node)>>),
    /// An instance: its class, with its arguments or state.
    Object(Shared<(Node, Option<Node>)>),
    Mark,
}

/// Nodes in a container.
struct Contents<T: Children>(RefCell<T>);

/// A container's direct child nodes.
trait Children {
    /// Takes the children out.
    fn take_all(&mut self) -> Vec<Node>;
}

impl Children for Vec<Node> {
    fn take_all(&mut self) -> Vec<Node> {
        std::mem::take(self)
    }
}

impl Children for Vec<(Node, Node)> {
    fn take_all(&mut self) -> Vec<Node> {
        std::mem::take(self).into_iter().flat_map(|(key, value)| [key, value]).collect()
    }
}

impl Children for (Node, Option<Node>) {
    fn take_all(&mut self) -> Vec<Node> {
        let class = std::mem::replace(&mut self.0, Node::Mark);
        std::iter::once(class).chain(self.1.take()).collect()
    }
}

/// Frees nested nodes iteratively: they may be nested as deep as a pickle has bytes.
impl<T: Children> Drop for Contents<T> {
    fn drop(&mut self) {
        fn last<T: Children>(shared: Shared<T>) -> Vec<Node> {
            Rc::into_inner(shared).map(|mut contents| contents.0.get_mut().take_all()).unwrap_or_default()
        }
        let mut nodes = self.0.get_mut().take_all();
        while let Some(node) = nodes.pop() {
            nodes.extend(match node {
                Node::List(items) => last(items),
                Node::Dict(pairs) => last(pairs),
                Node::Object(object) => last(object),
                Node::Leaf(_) | Node::Mark => Vec::new(),
            });
        }
    }
}

fn shared<T: Children>(children: T) -> Shared<T> {
    Rc::new(Contents(RefCell::new(children)))
}

/// Reads a pickle.
///
/// # Errors
/// The reason why it is not a pickle, or which limit it exceeds.
pub(super) fn read(bytes: &[u8]) -> Result<Value, String> {
    let mut machine = Machine { bytes, at: 0, left: OPCODES, stack: Vec::new(), memo: Vec::new() };
    let value = match machine.run() {
        Some(node) => value(&node, 0, &mut (VALUES, BYTES)),
        None if machine.left == 0 => Err(TOO_MANY.to_owned()),
        None => Err(format!("the pickle is not readable at byte {}", machine.at)),
    };
    // Containers may contain themselves: without this they would never be freed.
    for node in machine.memo.into_iter().flatten() {
        match node {
            Node::List(items) => drop(items.0.take()),
            Node::Dict(pairs) => drop(pairs.0.take()),
            Node::Object(object) => drop(object.0.borrow_mut().1.take()),
            Node::Leaf(_) | Node::Mark => {}
        }
    }
    value
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Remaining opcodes.
    left: usize,
    stack: Vec<Node>,
    memo: Vec<Option<Node>>,
}

impl<'a> Machine<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self, width: usize) -> Option<u64> {
        Some(self.take(width)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number(width)?).ok()?;
        self.take(length)
    }

    fn line(&mut self) -> Option<String> {
        let length = self.bytes.get(self.at..)?.iter().position(|b| *b == b'\n')?;
        let line = self.take(length)?;
        self.at += 1;
        Some(String::from_utf8_lossy(line).into_owned())
    }

    fn push(&mut self, value: impl Into<Value>) {
        self.stack.push(Node::Leaf(Rc::new(value.into())));
    }

    /// Pops the nodes above the last mark, and the mark; `None` if there is no mark.
    fn marked(&mut self) -> Option<Vec<Node>> {
        let mark = self.stack.iter().rposition(|node| matches!(node, Node::Mark))?;
        let above = self.stack.split_off(mark + 1);
        self.stack.pop();
        Some(above)
    }

    fn last(&mut self, count: usize) -> Option<Vec<Node>> {
        Some(self.stack.split_off(self.stack.len().checked_sub(count)?))
    }

    fn list(&mut self, items: Vec<Node>) {
        self.stack.push(Node::List(shared(items)));
    }

    fn dict(&mut self, flat: Vec<Node>) -> Option<()> {
        self.stack.push(Node::Dict(shared(paired(flat)?)));
        Some(())
    }

    fn object(&mut self, class: Node, args: Option<Node>) {
        self.stack.push(Node::Object(shared((class, args))));
    }

    /// Reads the memo index of an opcode.
    fn place(&mut self, opcode: u8) -> Option<usize> {
        match opcode {
            b'p' | b'g' => self.line()?.parse().ok(),
            _ => Some(self.number(width(opcode))? as usize),
        }
    }

    fn remember(&mut self, place: usize) -> Option<()> {
        // A memo has at most as many entries as a pickle has bytes.
        if place > self.bytes.len() {
            return None;
        }
        if self.memo.len() <= place {
            self.memo.resize_with(place + 1, || None);
        }
        self.memo[place] = Some(self.stack.last()?.clone());
        Some(())
    }

    fn recall(&mut self, place: usize) -> Option<()> {
        let node = self.memo.get(place)?.clone()?;
        self.stack.push(node);
        Some(())
    }

    fn append(&mut self, items: Vec<Node>) -> Option<()> {
        match self.stack.last()? {
            Node::List(list) => list.0.borrow_mut().extend(items),
            // For an instance that is a list, or is built by calls.
            Node::Object(_) => {}
            _ => return None,
        }
        Some(())
    }

    fn set_items(&mut self, flat: Vec<Node>) -> Option<()> {
        match self.stack.last()? {
            Node::Dict(dict) => dict.0.borrow_mut().extend(paired(flat)?),
            Node::Object(object) => {
                let pairs = Node::Dict(shared(paired(flat)?));
                object.0.borrow_mut().1 = Some(pairs);
            }
            _ => return None,
        }
        Some(())
    }

    fn long(&mut self, width: usize) -> Option<()> {
        let digits = self.sized(width)?;
        if digits.len() > 16 {
            self.push(format!("0x{}", hex::encode(digits.iter().rev().copied().collect::<Vec<_>>())));
            return Some(());
        }
        let sign = if digits.last().is_some_and(|high| *high >= 128) { -1 } else { 0 };
        let number = digits.iter().rev().fold(sign, |number: i128, byte| number << 8 | i128::from(*byte));
        match i64::try_from(number) {
            Ok(number) => self.push(number),
            Err(_) => self.push(number.to_string()),
        }
        Some(())
    }

    fn run(&mut self) -> Option<Node> {
        loop {
            self.left = self.left.checked_sub(1)?;
            let opcode = *self.take(1)?.first()?;
            match opcode {
                b'.' => return self.stack.pop().filter(|node| !matches!(node, Node::Mark)),
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'(' => self.stack.push(Node::Mark),
                b'0' => drop(self.stack.pop()?),
                b'1' => drop(self.marked()?),
                b'2' => {
                    let top = self.stack.last()?.clone();
                    self.stack.push(top);
                }
                b'N' => self.push(Value::Null),
                0x88 => self.push(true),
                0x89 => self.push(false),
                b'K' | b'M' => {
                    let number = self.number(width(opcode))?;
                    self.push(number);
                }
                b'J' => {
                    let number = self.number(4)? as u32 as i32;
                    self.push(number);
                }
                0x8A => self.long(1)?,
                0x8B => self.long(4)?,
                b'G' => {
                    let number = f64::from_be_bytes(self.take(8)?.try_into().ok()?);
                    self.push(real(number));
                }
                b'I' | b'L' | b'F' => {
                    let line = self.line()?;
                    let digits = line.trim_end_matches('L');
                    match (line.as_str(), digits.parse::<i64>(), digits.parse::<f64>()) {
                        ("00", ..) => self.push(false),
                        ("01", ..) => self.push(true),
                        (_, Ok(number), _) => self.push(number),
                        (_, _, Ok(number)) => self.push(real(number)),
                        _ => self.push(line),
                    }
                }
                b'S' | b'V' => {
                    let line = self.line()?;
                    self.push(line.trim_matches(['\'', '"']));
                }
                0x8C | b'X' | 0x8D => {
                    let text = self.sized(width(opcode))?;
                    self.push(String::from_utf8_lossy(text));
                }
                b'U' | b'C' | b'T' | b'B' | 0x8E | 0x96 => {
                    let bytes = self.sized(width(opcode))?;
                    self.push(bytes_as_text(bytes));
                }
                b']' | b')' | 0x8F => self.list(Vec::new()),
                b'}' => self.dict(Vec::new())?,
                b'l' | b't' | 0x91 => {
                    let items = self.marked()?;
                    self.list(items);
                }
                0x85..=0x87 => {
                    let items = self.last(usize::from(opcode - 0x84))?;
                    self.list(items);
                }
                b'd' => {
                    let flat = self.marked()?;
                    self.dict(flat)?;
                }
                b'a' => {
                    let items = self.last(1)?;
                    self.append(items)?;
                }
                b'e' | 0x90 => {
                    let items = self.marked()?;
                    self.append(items)?;
                }
                b's' => {
                    let flat = self.last(2)?;
                    self.set_items(flat)?;
                }
                b'u' => {
                    let flat = self.marked()?;
                    self.set_items(flat)?;
                }
                b'c' => {
                    let (module, class) = (self.line()?, self.line()?);
                    self.push(format!("{module}.{class}"));
                }
                0x93 => {
                    let class = self.stack.pop()?;
                    let module = self.stack.pop()?;
                    let (Node::Leaf(module), Node::Leaf(class)) = (module, class) else { return None };
                    self.push(format!("{}.{}", key_text(&module), key_text(&class)));
                }
                b'i' => {
                    let (module, class) = (self.line()?, self.line()?);
                    let args = Node::List(shared(self.marked()?));
                    self.object(Node::Leaf(Rc::new(Value::from(format!("{module}.{class}")))), Some(args));
                }
                b'o' => {
                    let mut parts = self.marked()?;
                    if parts.is_empty() {
                        return None;
                    }
                    let class = parts.remove(0);
                    self.object(class, Some(Node::List(shared(parts))));
                }
                b'R' | 0x81 => {
                    let args = self.stack.pop()?;
                    let class = self.stack.pop()?;
                    self.object(class, Some(args));
                }
                0x92 => {
                    let args = self.last(3)?;
                    self.object(args[0].clone(), Some(args[2].clone()));
                }
                b'b' => {
                    let state = self.stack.pop()?;
                    if let Node::Object(object) = self.stack.last()? {
                        object.0.borrow_mut().1 = Some(state);
                    }
                }
                b'P' => {
                    let line = self.line()?;
                    self.push(line);
                }
                b'Q' | 0x97 | 0x98 => {}
                0x82..=0x84 => {
                    let number = self.number(1 << (opcode - 0x82))?;
                    self.push(format!("extension {number}"));
                }
                b'p' | b'q' | b'r' => {
                    let place = self.place(opcode)?;
                    self.remember(place)?;
                }
                0x94 => self.remember(self.memo.len())?,
                b'g' | b'h' | b'j' => {
                    let place = self.place(opcode)?;
                    self.recall(place)?;
                }
                _ => return None,
            }
        }
    }
}

/// Bytes of the number after an opcode.
fn width(opcode: u8) -> usize {
    match opcode {
        b'K' | b'U' | b'C' | 0x8C | b'h' | b'q' => 1,
        b'M' => 2,
        b'T' | b'B' | b'X' | b'j' | b'r' => 4,
        _ => 8,
    }
}

fn paired(flat: Vec<Node>) -> Option<Vec<(Node, Node)>> {
    if flat.len() % 2 == 1 {
        return None;
    }
    let mut flat = flat.into_iter();
    let mut pairs = Vec::new();
    while let (Some(key), Some(value)) = (flat.next(), flat.next()) {
        pairs.push((key, value));
    }
    Some(pairs)
}

/// The JSON of a node. `budget` is the remaining number of values and of text bytes.
fn value(node: &Node, depth: usize, budget: &mut (usize, usize)) -> Result<Value, String> {
    budget.0 = budget.0.checked_sub(1).ok_or(TOO_MANY)?;
    if depth >= MAX_DEPTH {
        return Err(format!("it nests deeper than {MAX_DEPTH}"));
    }
    Ok(match node {
        Node::Mark => Value::Null,
        Node::Leaf(leaf) => {
            let bytes = leaf.as_str().map_or(0, str::len);
            budget.1 = budget.1.checked_sub(bytes).ok_or("its texts are longer than we read")?;
            Value::clone(leaf)
        }
        Node::List(items) => {
            let items = items.0.borrow();
            items.iter().map(|item| value(item, depth + 1, budget)).collect::<Result<_, _>>()?
        }
        Node::Dict(pairs) => {
            let mut object = Map::new();
            for (key, member) in pairs.0.borrow().iter() {
                let key = key_text(&value(key, depth + 1, budget)?);
                object.insert(key, value(member, depth + 1, budget)?);
            }
            Value::Object(object)
        }
        Node::Object(object) => {
            let object = object.0.borrow();
            let class = value(&object.0, depth + 1, budget)?;
            let state = match &object.1 {
                Some(state) => value(state, depth + 1, budget)?,
                None => Value::Null,
            };
            of_class(class, state)
        }
    })
}

/// An instance as an object: with the members of its state, or otherwise its arguments.
fn of_class(class: Value, state: Value) -> Value {
    let mut object = Map::from_iter([("$class".to_owned(), class)]);
    match state {
        Value::Object(mut state) => match state.remove("__dict__") {
            Some(Value::Object(members)) => object.extend(members),
            _ => object.extend(state),
        },
        Value::Array(args) if args.is_empty() => {}
        Value::Null => {}
        args => {
            object.insert("args".to_owned(), args);
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_instance_is_its_members() {
        // class events.Actions with the state {'__dict__': {'state_delta': {'name': 'Ann'}}, 'extra': None}
        let mut pickle = b"\x80\x05\x8c\x06events\x8c\x07Actions\x93)\x81}(\x8c\x08__dict__}\x8c\x0bstate_delta}\x8c\x04name\x8c\x03Annss".to_vec();
        pickle.extend(b"\x8c\x05extraNub.");
        assert_eq!(read(&pickle), Ok(json!({"$class": "events.Actions", "state_delta": {"name": "Ann"}})));
    }

    #[test]
    fn what_would_grow_without_end_is_refused() {
        // l0 = []; l1 = [l0, l0]; and so on: 2^60 values.
        let mut pickle = b"\x80\x04]\x94".to_vec();
        for level in 0..60_u8 {
            pickle.extend([b']', 0x94, b'(', b'h', level, b'h', level, b'e']);
        }
        pickle.push(b'.');
        assert!(read(&pickle).is_err());
        // A list that contains itself.
        assert!(read(b"\x80\x04]\x94h\x00a.").is_err());
        assert!(read(b"\x80\x04(.").is_err() && read(b"").is_err());
        // Nested lists: returned, popped off the stack, and cut off.
        for end in [&b"."[..], b"0N.", b""] {
            let deep = [&b"(".repeat(1 << 18)[..], &b"l".repeat(1 << 18), end].concat();
            assert_eq!(read(&deep).is_ok(), end == b"0N.");
        }
        // More values than the limit.
        let long = [&b"("[..], &b"N".repeat(OPCODES), b"l."].concat();
        assert_eq!(read(&long), Err(TOO_MANY.to_owned()));
    }
}
