//! Helpers of the fuzz targets in `tests/`: small inputs that become damage to large, valid files.

/// Carries out a script of edits on a copy of `base`: random bytes as a whole never pass a first check, a valid file with a
/// few changes does. Each six bytes of `script` are one edit: where (3), what (1), with what (2).
pub fn damage(base: &[u8], script: &[u8]) -> Vec<u8> {
    let mut out = base.to_vec();
    for edit in script.chunks_exact(6) {
        if out.is_empty() {
            break;
        }
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize % out.len();
        let word = u16::from_le_bytes([edit[4], edit[5]]);
        match edit[3] % 8 {
            0 => out[at] = edit[4],
            1 => out[at] ^= 1 << (edit[4] % 8),
            2 => write(&mut out, at, &word.to_le_bytes()),
            3 => write(&mut out, at, &[0xff; 8]),
            4 => out.truncate(at),
            5 => zero_sector(&mut out, at),
            6 => copy_within(&mut out, at, word as usize),
            _ => out.extend_from_slice(&edit[4..6]),
        }
    }
    out
}

/// Splits one input into a few: the first byte of each piece is its length.
pub fn pieces(mut input: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    while let Some((&len, rest)) = input.split_first() {
        let (piece, after) = rest.split_at(rest.len().min(len as usize));
        out.push(piece);
        input = after;
    }
    out
}

fn write(out: &mut [u8], at: usize, bytes: &[u8]) {
    let end = out.len().min(at + bytes.len());
    out[at..end].copy_from_slice(&bytes[..end - at]);
}

/// What a power cut leaves.
fn zero_sector(out: &mut [u8], at: usize) {
    let start = at / 512 * 512;
    let end = out.len().min(start + 512);
    out[start..end].fill(0);
}

/// Pages that point at each other come from here.
fn copy_within(out: &mut [u8], at: usize, from: usize) {
    let from = from * 64 % out.len();
    let len = 64.min(out.len() - at).min(out.len() - from);
    out.copy_within(from..from + len, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_stay_inside() {
        bolero::check!().with_iterations(2000).for_each(|input: &[u8]| {
            let base: Vec<u8> = (0..=255).cycle().take(2000).collect();
            assert!(damage(&base, input).len() <= base.len() + input.len());
            assert!(pieces(input).iter().map(|p| p.len() + 1).sum::<usize>() <= input.len());
        });
    }
}
