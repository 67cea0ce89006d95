//! The engines against the shared suite, and what only a file on a disk can suffer.

mod cancel;
mod claims;
mod copies;
mod crash;
mod damage;
mod disk_full;
mod engines_page;
mod etcd;
mod kv;
mod loss;
mod overload;
mod owners;
mod places;
mod position;
mod postgres;
mod processes;
mod redis;
mod redis_cluster;
mod scene;
mod spool;
mod suite;
mod tls;
mod waiting;
mod wal;
