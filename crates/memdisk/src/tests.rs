//! Crashes, torn writes, locks.

use std::{io, path::Path, sync::Arc};

use wal::{Disk, DiskFile, OpenMode};

use super::*;

fn path() -> &'static Path {
    Path::new("/dir/file")
}

/// A file with two synced sectors of 1, and the second overwritten with 2.
fn half_synced(cut: Cut) -> (MemDisk, Box<dyn DiskFile>) {
    let disk = MemDisk::new(Arc::default(), cut);
    let file = disk.open(path(), OpenMode::Create).unwrap();
    file.write_all_at(&[1; 2 * SECTOR], 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[2; SECTOR], SECTOR as u64).unwrap();
    (disk, file)
}

fn sectors(disk: &MemDisk) -> Vec<u8> {
    disk.bytes(path()).unwrap().chunks(SECTOR).map(|sector| sector[0]).collect()
}

#[test]
fn a_crash_takes_what_was_not_synced() {
    let (disk, _) = half_synced(Cut::Frees);
    let (lost, kept) = (disk.fork(), disk.fork());
    lost.crash(|| false);
    kept.crash(|| true);
    assert_eq!((sectors(&lost), sectors(&kept)), (vec![1, 1], vec![1, 2]));
    assert_eq!(sectors(&disk), [1, 2], "a fork is another disk");
}

#[test]
fn what_a_cut_file_had_may_come_back_on_the_worst_of_disks_alone() {
    for (cut, expected) in [(Cut::Frees, vec![1, 0]), (Cut::MayReturn, vec![1, 1])] {
        let (disk, file) = half_synced(cut);
        file.set_size(SECTOR as u64).unwrap();
        file.write_all_at(&[3; SECTOR], SECTOR as u64).unwrap();
        disk.crash(|| false);
        assert_eq!(sectors(&disk), expected, "{cut:?}");
    }
}

#[test]
fn the_write_under_which_the_power_goes_is_torn() {
    let (disk, file) = half_synced(Cut::Frees);
    disk.power().cut_after(2);
    file.sync_data().unwrap();
    assert!(file.write_all_at(&[4; 2 * SECTOR], 0).is_err());
    assert!(disk.power().is_cut() && file.sync_data().is_err());
    assert_eq!(sectors(&disk), [4, 2]);
    disk.power().tear_at(0);
    assert!(file.write_all_at(&[5; 2 * SECTOR], 0).is_err());
    assert_eq!(sectors(&disk), [4, 2]);
    disk.power().restore();
    file.write_all_at(&[5; 2 * SECTOR], 0).unwrap();
    assert_eq!(sectors(&disk), [5, 5]);
}

#[test]
fn one_writer_at_a_time_and_renames_of_whole_dirs() {
    let (disk, file) = half_synced(Cut::Frees);
    let second = disk.open(path(), OpenMode::Write).map(drop);
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(file);
    drop(disk.open(path(), OpenMode::Write).unwrap());
    disk.rename(Path::new("/dir"), Path::new("/other")).unwrap();
    assert_eq!(disk.list(Path::new("/other")).unwrap(), ["file"]);
    assert_eq!(disk.open(path(), OpenMode::Read).map(drop).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_failed_sync_keeps_pages_dirty_or_drops_them() {
    let after = |fault, syncs_again: bool| {
        let (disk, file) = half_synced(Cut::Frees);
        disk.fail_sync_after(0, fault);
        file.sync_data().unwrap_err();
        assert_eq!(sectors(&disk), [1, 2], "reads return the page from the cache");
        if syncs_again {
            file.sync_data().unwrap();
        }
        disk.crash(|| false);
        sectors(&disk)
    };
    assert_eq!(after(SyncFault::Keeps, false), [1, 1]);
    assert_eq!(after(SyncFault::Keeps, true), [1, 2]);
    assert_eq!(after(SyncFault::Drops { lost: 0b01 }, false), [1, 2]);
    assert_eq!(after(SyncFault::Drops { lost: 0b10 }, true), [1, 1]);
}

#[test]
fn a_dropped_sector_is_on_disk_once_it_is_written_again() {
    let (disk, file) = half_synced(Cut::Frees);
    disk.fail_sync_after(0, SyncFault::Drops { lost: !0 });
    file.sync_data().unwrap_err();
    file.write_all_at(&[9], SECTOR as u64 + 1).unwrap();
    file.sync_data().unwrap();
    disk.crash(|| false);
    assert_eq!(disk.bytes(path()).unwrap()[SECTOR..SECTOR + 3], [2, 9, 2]);
}

#[test]
fn a_rename_is_lost_until_its_directory_is_synced() {
    let (disk, _) = half_synced(Cut::Frees);
    let to = Path::new("/dir/new");
    disk.rename(path(), to).unwrap();
    let lost = disk.fork();
    lost.crash(|| false);
    assert_eq!(lost.paths(), [path()]);
    disk.sync_dir(Path::new("/dir")).unwrap();
    disk.crash(|| false);
    assert_eq!(disk.paths(), [to]);
}

/// The file of a process that wrote `ops` to an empty file and died, after a power cut in the next process.
fn after_restart(ops: Vec<Op>) -> (Vec<u8>, Vec<u8>) {
    let disk = FileDisk::restarted(&[], ops);
    let cached = disk.image();
    bolt::Disk::sync(&disk).unwrap();
    let image = crash(&[], &disk.ops(), Survives::Nothing, &mut random::Random::new(1));
    (cached, image)
}

#[test]
fn a_database_file_remembers_what_earlier_processes_did_not_sync() {
    let write = Op::Write { at: 0, bytes: vec![7; SECTOR] };
    let written = vec![7; SECTOR];
    assert_eq!(after_restart(vec![write.clone()]), (written.clone(), written.clone()));
    let keeps = vec![write.clone(), Op::FailedSync(SyncFault::Keeps)];
    assert_eq!(after_restart(keeps), (written.clone(), written.clone()));
    let drops = vec![write, Op::FailedSync(SyncFault::Drops { lost: !0 })];
    assert_eq!(after_restart(drops), (written, vec![0; SECTOR]));
}
