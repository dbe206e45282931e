"""Pages: one file per step. A handler reads the job, and either shows a page or makes a new job."""
