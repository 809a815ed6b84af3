import type { NewExecution } from '../workflows.ts'
import type { Connection } from './database.ts'
import type { JobRow } from './job-reads.ts'
import type { WriteContext } from './write-context.ts'

/** A job of an execution, as its removal needs it. */
export type OwnJob = Pick<JobRow, 'number' | 'organizationId' | 'id' | 'status' | 'node' | 'item'>

/** Jobs whose results other executions reuse: they stay as long as one of these. */
export function openReusedWork(connection: Connection, { forgetJob }: Pick<WriteContext, 'forgetJob'>) {
  const usedElsewhere = connection.query<{ execution: number; node: number }>`
    SELECT execution, node FROM execution_nodes WHERE job_id = :job AND cached = 1 AND execution <> :own UNION ALL
    SELECT execution, node FROM execution_items WHERE job_id = :job AND cached = 1 AND execution <> :own LIMIT 1`
  const reassign = connection.statement`UPDATE jobs SET execution = ?, node = NULL, item = NULL WHERE number = ?`
  const listsOf = connection.query<{
    node: number
    jobId: string
  }>`SELECT node, job_id AS jobId FROM execution_nodes AS own
    WHERE execution = ? AND job_id IS NOT NULL
    AND EXISTS (SELECT 1 FROM execution_items WHERE execution = own.execution AND node = own.node)`
  const reassignItemJobs = connection.statement`UPDATE jobs SET execution = ?, node = NULL, item = NULL
    WHERE organization_id = ? AND execution = ?
    AND id IN (SELECT job_id FROM execution_items WHERE execution = ? AND node = ?)`
  const reassignItems = connection.statement`UPDATE execution_items SET execution = ?, node = ?
    WHERE execution = ? AND node = ?`
  // A job is missing if the earlier execution is being removed, in batches.
  const copyItems = connection.statement`INSERT INTO execution_items (execution, node, item, status, job_id, cached, at)
    SELECT ?, ?, i.item, 'completed', i.job_id, 1, ? FROM executions AS e
    CROSS JOIN execution_nodes AS n ON n.execution = e.number
    CROSS JOIN execution_items AS i ON i.execution = n.execution AND i.node = n.node
    CROSS JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = i.job_id
    WHERE e.organization_id = ? AND e.id = ? AND n.node_id = ? AND i.status = 'completed' AND jobs.status = 'completed'`
  const setCompleted = connection.statement`UPDATE execution_nodes SET items_completed = ? WHERE execution = ? AND node = ?`

  return {
    /** Gives a node the completed items of the node of the same name in the execution that its execution retries. */
    keepItems(
      { execution, node, nodeId, at }: { execution: number; node: number; nodeId: string; at: number },
      { organizationId, parentExecutionId }: Pick<NewExecution, 'organizationId' | 'parentExecutionId'>,
    ): void {
      const { changes } = copyItems.run(execution, node, at, organizationId, parentExecutionId, nodeId)
      setCompleted.run(changes, execution, node)
    },

    /** Removes a job of an execution, unless another execution reuses its result: then it is assigned to that one. */
    forgetOrAssign(job: OwnJob, own: number, at: number): void {
      const other = usedElsewhere.get({ job: job.id, own })
      if (other === undefined) forgetJob(job, at)
      else reassign.run(other.execution, job.number)
    },

    /**
     * Assigns the items of each list of an execution to the execution that reuses the whole result of the list: their files are
     * part of it.
     */
    assignLists({ number: own, organizationId }: { number: number; organizationId: string }): void {
      for (const { node, jobId } of listsOf.all(own)) {
        const other = usedElsewhere.get({ job: jobId, own })
        if (other === undefined) continue
        reassignItemJobs.run(other.execution, organizationId, own, own, node)
        reassignItems.run(other.execution, other.node, own, node)
      }
    },
  }
}
