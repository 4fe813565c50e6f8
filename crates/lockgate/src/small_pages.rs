//! `lockgate apiserver` without huge pages. It holds a few megabytes in many places, and in huge pages they would take several times that:
//! 16 MB instead of 5 with 20 definitions. A member, also one within the process of an API server, keeps them.
//!
//! The allocator has touched its first huge pages before `main` begins, so this is done when the program is loaded, as the
//! standard library takes the arguments there: glibc hands them to every function of `.init_array`.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod early {
    use std::ffi::{CStr, c_char, c_int};

    type Arguments = *const *const c_char;

    #[used]
    // SAFETY: the section holds functions of this signature, which run once, before `main`.
    #[unsafe(link_section = ".init_array.00098")]
    static AT_LOAD: extern "C" fn(c_int, Arguments, Arguments) = at_load;

    /// Allocates nothing: that would be too late.
    extern "C" fn at_load(count: c_int, arguments: Arguments, _environment: Arguments) {
        let count = usize::try_from(count).unwrap_or_default();
        if count < 2 || arguments.is_null() {
            return;
        }
        // SAFETY: glibc gives as many arguments as it says, each a text that ends with a zero and lives as long as the process.
        let argument = |index: usize| unsafe { CStr::from_ptr(*arguments.add(index)) }.to_bytes();
        let is_alone = || (2..count).any(|index| argument(index).starts_with(b"--etcd-servers"));
        if argument(1) == b"apiserver" && is_alone() {
            let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
            // SAFETY: this sets a flag of the process. A kernel that does not know it says so, and nothing is lost.
            unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, none, none, none) };
        }
    }
}
