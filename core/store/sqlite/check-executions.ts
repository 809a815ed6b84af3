/** Contradictions between executions, their nodes and the nodes' jobs: each query counts the wrong rows. */
export const executionContradictions: readonly { sql: string; sentence: (rows: number) => string }[] = [
  {
    sql: `SELECT count(*) FROM execution_nodes AS n JOIN jobs ON jobs.execution = n.execution AND jobs.node = n.node
      WHERE CASE n.status
        WHEN 'ready' THEN jobs.status NOT IN ('pending', 'processing')
        WHEN 'completed' THEN jobs.status <> 'completed'
        WHEN 'failed' THEN jobs.status NOT IN ('failed', 'cancelled')
        WHEN 'pending' THEN 1
        ELSE jobs.status <> 'cancelled' END`,
    sentence: rows => `${rows} nodes of executions have another status than their jobs.`,
  },
  {
    sql: `SELECT count(*) FROM execution_nodes AS n WHERE n.status = 'ready' AND NOT EXISTS (
      SELECT 1 FROM jobs WHERE jobs.execution = n.execution AND jobs.node = n.node)`,
    sentence: rows => `${rows} nodes of executions are ready and have no job.`,
  },
  {
    sql: `SELECT count(*) FROM execution_nodes AS n JOIN executions AS e ON e.number = n.execution
      WHERE n.status = 'completed' AND NOT EXISTS (
        SELECT 1 FROM jobs JOIN job_results USING (number)
        WHERE jobs.organization_id = e.organization_id AND jobs.id = n.job_id)`,
    sentence: rows => `${rows} nodes of executions have completed but their results are missing.`,
  },
  {
    sql: `SELECT count(*) FROM executions AS e WHERE (e.finished_at IS NULL) <> EXISTS (
      SELECT 1 FROM execution_nodes AS n WHERE n.execution = e.number AND n.status IN ('pending', 'ready'))`,
    sentence: rows =>
      `${rows} executions have ended with unfinished nodes, or are unfinished although all nodes have ended.`,
  },
  {
    sql: `SELECT count(*) FROM executions AS e JOIN (
        SELECT execution, count(*) AS nodes, sum(status = 'completed') AS completed,
          sum(status IN ('failed', 'timed_out')) AS failed, sum(status IN ('skipped', 'cancelled')) AS skipped
        FROM execution_nodes GROUP BY execution) AS n ON n.execution = e.number
      WHERE e.nodes <> n.nodes OR e.completed <> n.completed OR e.failed <> n.failed OR e.skipped <> n.skipped`,
    sentence: rows => `${rows} executions have wrong counts of their nodes.`,
  },
  {
    sql: `SELECT count(*) FROM executions AS e WHERE e.running <> (
      SELECT count(*) FROM jobs WHERE jobs.execution = e.number AND node IS NOT NULL AND status = 'processing')`,
    sentence: rows => `${rows} executions have wrong counts of running nodes.`,
  },
  {
    sql: `SELECT count(*) FROM jobs WHERE execution IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM executions WHERE number = jobs.execution AND executions.organization_id = jobs.organization_id)`,
    sentence: rows => `${rows} jobs belong to executions that do not exist.`,
  },
  {
    sql: `SELECT count(*) FROM cached_results WHERE NOT EXISTS (
      SELECT 1 FROM jobs WHERE jobs.id = cached_results.job_id AND status = 'completed')`,
    sentence: rows => `${rows} cached results name jobs that are missing or not completed.`,
  },
]
