INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('default', 'a_task_of_an_older_release', '{}');
