import type { ExecutionItem, NodeJob } from '../execution-items.ts'
import type { Statements } from '../method-table.ts'
import { deferredUntil, type JobError, type RowKey } from '../store.ts'
import type { ExecutionNode, ExecutionRecord, NodeResult } from '../workflows.ts'
import { definitionOf, fromJson, hasTag, pageOf, type RowOf, recordIf, selected, withJson } from './columns.ts'
import type { Connection } from './database.ts'
import { cancelledError } from './job-end.ts'
import { hasMetadata } from './job-list.ts'
import { type ListWaits, openListWaits } from './list-waits.ts'
import { type JobOfNode, statusWith } from './live-executions.ts'
import { openResultOf, type ResultRow } from './results.ts'
import { usageJson } from './usage-columns.ts'

/** An execution as its row has it: JSON as text. */
interface ExecutionRow
  extends RowOf<
    Omit<ExecutionRecord, 'warnings' | 'queued' | 'continues' | 'parentNode'>,
    'definition' | 'inputParams' | 'webhook' | 'error' | 'progress' | 'usage'
  > {
  number: number
  dag: string | null
  failed: number
  queued: number
  continues: number
  parentId: string | null
  parentNodeId: string | null
}

/** The columns of a node or of an item, and of its job. */
interface WorkRow
  extends Pick<ExecutionNode, 'jobId' | 'childExecutionId' | 'startedAt' | 'finishedAt' | 'status' | 'cost'>,
    JobOfNode {
  at: number
  cached: number
  attempt: number | null
  error: string | null
}
interface NodeRow extends WorkRow, Pick<ExecutionNode, 'nodeId' | 'task' | 'modelId' | 'skipReason'> {
  items: number | null
  itemsCompleted: number
  itemsFailed: number
  itemsRunning: number
  itemsWaiting: number
  itemsCost: number
}

/** About how many characters of results are read at once. */
const resultsLength = 1 << 18
/** How many results of items are read at once. */
const maxResults = 200

/** How many rows a page scans for a rare kind. */
const maxScanned = 1_000

/** Reads of executions; short statements on a read-only connection. */
export function executionReads(connection: Connection) {
  const columns = `${selected(
    `number, organizationId, id, tokenId, workflowId, workflowVersion, definition, inputParams, priority, status, error,
    timeoutMs, retentionMs, metadata, webhook, traceparent, origin, createdAt, updatedAt, startedAt, timeoutAt, remainingMs, finishedAt,
    expiresAt, failed, cost, queued, continues, budget`,
  )}, parent_id AS parentExecutionId,
    (SELECT id FROM executions AS p WHERE p.number = executions.parent_execution) AS parentId,
    (SELECT node_id FROM execution_nodes AS p WHERE p.execution = executions.parent_execution
      AND p.node = executions.parent_node) AS parentNodeId, ${usageJson} AS usage, json_object('total', nodes, 'completed', completed,
    'failed', failed, 'skipped', skipped, 'running', running, 'waiting', waiting) AS progress`
  const from = 'FROM executions JOIN execution_plans ON execution = number'
  // Counted for single executions only: with ten thousand waiting ones it takes half a millisecond.
  const position = `CASE queued WHEN 1 THEN (SELECT count(*) FROM executions AS o INDEXED BY executions_queued
    WHERE o.organization_id = executions.organization_id AND o.workflow_id = executions.workflow_id AND o.queued = 1
    AND o.priority >= executions.priority AND (o.priority > executions.priority OR o.number < executions.number))
    END AS queuePosition`
  const one = connection.query<ExecutionRow>`SELECT dag, ${position}, ${columns} ${from} WHERE organization_id = ? AND id = ?`
  // Without the graph, which may be large.
  const short = connection.query<ExecutionRow>`SELECT NULL AS dag, ${position}, ${columns} ${from}
    WHERE organization_id = ? AND id = ?`
  const pages = (where: string) =>
    connection.query<ExecutionRow>`SELECT NULL AS dag, NULL AS queuePosition, ${columns} ${from}
      WHERE organization_id = ? AND id < ? ${where}
      ORDER BY id DESC LIMIT ?`
  const newest = pages('')
  const newestOf = pages('AND workflow_id = ?')
  const nestedBy = connection.query<ExecutionRow>`SELECT NULL AS dag, NULL AS queuePosition, ${columns} ${from}
    WHERE organization_id = ? AND parent_job = (SELECT coalesce(i.job_id, n.job_id) FROM execution_nodes AS n
    LEFT JOIN execution_items AS i ON i.execution = n.execution AND i.node = n.node AND i.item = ?
    WHERE n.execution = ? AND n.node_id = ?)`
  const unresolved = connection.query<RowKey & { jobId: string }>`SELECT jobs.organization_id AS organizationId,
    coalesce(e.id, '') AS id, jobs.id AS jobId FROM jobs LEFT JOIN executions AS e
    ON e.organization_id = jobs.organization_id AND e.parent_job = jobs.id
    WHERE jobs.awaits = 'execution' AND jobs.status = 'pending' AND jobs.not_before > 0
    AND jobs.not_before = ${String(deferredUntil)} AND (e.number IS NULL OR e.finished_at IS NOT NULL)`
  const budgets = connection.query<{ executionId: string; limit: number; spent: number }>`
    WITH RECURSIVE around (number, id, budget, cost, parent) AS (
      SELECT number, id, budget, cost, parent_execution FROM executions WHERE organization_id = ? AND id = ?
      UNION ALL SELECT e.number, e.id, e.budget, e.cost, e.parent_execution FROM executions AS e
      JOIN around ON e.number = around.parent
    ) SELECT id AS executionId, budget AS "limit", cost AS spent FROM around WHERE budget IS NOT NULL`
  const nodes = connection.query<NodeRow>`
    SELECT ${selected('nodeId, task, modelId, status, skipReason, at, jobId, cached', 'n')},
    ${selected('items, itemsCompleted, itemsFailed, itemsRunning, itemsWaiting, itemsCost', 'n')}, jobs.status AS jobStatus,
    ${selected('attempt, awaits, error, startedAt, finishedAt', 'jobs')}, coalesce(child.cost, jobs.cost) AS cost,
    child.id AS childExecutionId
    FROM execution_nodes AS n LEFT JOIN executions AS e ON e.number = n.execution
    LEFT JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = n.job_id
    LEFT JOIN executions AS child ON child.organization_id = e.organization_id AND child.parent_job = n.job_id
    WHERE n.execution = ? ORDER BY n.node`
  const toleratedFailures = connection.query<Pick<NodeRow, 'nodeId' | 'error'>>`SELECT n.node_id AS nodeId, jobs.error
    FROM execution_nodes AS n LEFT JOIN jobs
    ON jobs.execution = n.execution AND jobs.item IS NULL AND jobs.node = n.node
    WHERE n.execution = ? AND n.status = 'failed' ORDER BY n.node`
  const numberOfNode = connection.query<{ execution: number; node: number; items: number | null }>`
    SELECT n.execution, n.node, n.items FROM executions AS e JOIN execution_nodes AS n ON n.execution = e.number
    WHERE e.organization_id = ? AND e.id = ? AND n.node_id = ?`
  const jobOfItem = `FROM execution_items AS i JOIN executions AS e ON e.number = i.execution
    LEFT JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = i.job_id`
  const items = connection.query<WorkRow & Pick<ExecutionItem, 'index'>>`
    SELECT i.item AS 'index', ${selected('status, at, jobId, cached', 'i')}, jobs.status AS jobStatus,
    ${selected('attempt, awaits, error, startedAt, finishedAt', 'jobs')}, coalesce(child.cost, jobs.cost) AS cost,
    child.id AS childExecutionId ${jobOfItem}
    LEFT JOIN executions AS child ON child.organization_id = e.organization_id AND child.parent_job = i.job_id
    WHERE i.execution = :execution AND i.node = :node AND i.item > :after
    AND (:stored IS NULL OR i.status = :stored) AND (:status IS NULL OR :status =
    CASE WHEN i.status <> 'ready' THEN i.status WHEN jobs.status = 'processing' THEN 'running'
      WHEN jobs.awaits IS NULL THEN 'ready' ELSE 'waiting' END) ORDER BY i.item LIMIT :limit`
  const resultsOfItems = connection.query<ResultRow>`SELECT result, file, bytes ${jobOfItem}
    LEFT JOIN job_results ON job_results.number = jobs.number AND i.status = 'completed'
    WHERE i.execution = ? AND i.node = ? AND i.item >= ? ORDER BY i.item`
  const gathers = connection.query<NodeJob>`SELECT ${selected('organizationId, id', 'jobs')}, e.id AS executionId,
    n.node_id AS nodeId FROM jobs INDEXED BY jobs_awaiting JOIN executions AS e ON e.number = jobs.execution
    JOIN execution_nodes AS n ON n.execution = jobs.execution AND n.node = jobs.node
    WHERE awaits = 'items' AND n.items = n.items_completed + n.items_failed`
  const nextDue = connection.scalar<number | null>`SELECT min(timeout_at) FROM executions WHERE finished_at IS NULL
    AND timeout_at IS NOT NULL`
  const numberOf = connection.scalar<number>`SELECT number FROM executions WHERE organization_id = ? AND id = ?`
  const resultOf = connection.query<ResultRow & Pick<NodeRow, 'status' | 'jobStatus' | 'error'>>`
    SELECT n.status, jobs.status AS jobStatus, jobs.error, result, file, bytes
    FROM executions AS e JOIN execution_nodes AS n ON n.execution = e.number
    LEFT JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = n.job_id
    LEFT JOIN job_results ON job_results.number = jobs.number AND n.status = 'completed'
    WHERE e.number = ? AND n.node_id = ?`
  const shownResult = openResultOf(connection)
  const lists = openListWaits(connection)
  const inputsOf = connection.query<{ nodeId: string; inputs: string }>`
    SELECT n.node_id AS nodeId, job_inputs.inputs FROM execution_nodes AS n JOIN executions AS e ON e.number = n.execution
    JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = n.job_id
    JOIN job_inputs ON job_inputs.number = jobs.number
    WHERE n.execution = ? AND n.status = 'completed' AND length(job_inputs.inputs) <= ?`
  const cached = connection.scalar<string>`SELECT job_id FROM cached_results WHERE key = ? AND EXISTS
    (SELECT 1 FROM jobs WHERE organization_id = ? AND jobs.id = cached_results.job_id AND status = 'completed')`

  /** The row counts a list that has begun as running, also while it waits. */
  function progressOf({ number, finishedAt, progress: text }: ExecutionRow): ExecutionRecord['progress'] {
    const progress = fromJson<ExecutionRecord['progress']>(text)
    const { running, waiting } = progress
    if (finishedAt !== null || running === 0) return progress
    const waits = lists.count(number)
    return { ...progress, running: running - waits, waiting: waiting + waits }
  }

  function nodesOf(execution: number | undefined): ExecutionNode[] {
    if (execution === undefined) return []
    return nodes.all(execution).map((row, node) => nodeOf(row, lists.ofNode(execution, node, row)))
  }

  function record(whole: ExecutionRow): ExecutionRecord {
    const { number, dag, failed, parentId, parentNodeId, ...row } = whole
    return {
      ...withJson(row, 'inputParams', 'webhook', 'error', 'usage'),
      progress: progressOf(whole),
      queued: row.queued === 1,
      continues: row.continues === 1,
      parentNode: parentId === null || parentNodeId === null ? null : { executionId: parentId, nodeId: parentNodeId },
      definition: definitionOf({ definition: row.definition, dag }),
      warnings: row.status === 'completed' && failed > 0 ? toleratedFailures.all(number).map(warningOf) : [],
    }
  }

  return {
    'executions.find': (organizationId, id) => recordIf(one.get(organizationId, id), record),
    'executions.nested': (organizationId, id, { nodeId, item = null }) =>
      recordIf(nestedBy.get(organizationId, item, numberOf.get(organizationId, id), nodeId), record),
    'executions.budgets': (organizationId, id) => budgets.all(organizationId, id),
    'executions.unresolved': () => unresolved.all(),
    'executions.summary': (organizationId, id) => recordIf(short.get(organizationId, id), record),
    'executions.nodes': (organizationId, id) => nodesOf(numberOf.get(organizationId, id)),
    'executions.list'(organizationId, { limit, after = '~', workflowId, status, createdAfter, metadata, tag }) {
      const rows = workflowId
        ? newestOf.iterate(organizationId, after, workflowId, maxScanned)
        : newest.iterate(organizationId, after, maxScanned)
      const found: ExecutionRow[] = []
      const expected = metadata && Object.entries(metadata)
      let [scanned, last] = [0, '']
      // One more than the limit shows whether there is a next page.
      for (const row of rows) {
        if (createdAfter !== undefined && row.createdAt < createdAfter) break
        scanned++
        last = row.id
        if (status && row.status !== status) continue
        if (expected && !hasMetadata(row.metadata, expected)) continue
        if (tag !== undefined && !hasTag(row.definition, tag)) continue
        if (found.push(row) > limit) break
      }
      const { page, next } = pageOf(found, limit)
      return { executions: page.map(record), next: next?.id ?? (scanned === maxScanned ? last : null) }
    },
    'executions.nextDue': () => nextDue.get() ?? null,
    'executions.results'(organizationId, id, nodeIds) {
      const number = numberOf.get(organizationId, id)
      if (number === undefined) return {}
      const found: Record<string, NodeResult> = {}
      for (const nodeId of nodeIds) {
        const row = resultOf.get(number, nodeId)
        if (row) found[nodeId] = { status: row.status, result: shownResult(row), error: errorOf(row) }
      }
      return found
    },
    'executions.items'(organizationId, id, { nodeId, after, limit, status = null }) {
      const found = numberOfNode.get(organizationId, id, nodeId)
      if (!found) return []
      // Whether an item waits or runs is in the row of its job.
      const stored = status === 'running' || status === 'waiting' ? 'ready' : status
      const { execution, node } = found
      return items.all({ execution, node, after, limit, status, stored }).map(row => workOf(row) as ExecutionItem)
    },
    'executions.itemResults'(organizationId, id, { nodeId, item }) {
      const found = numberOfNode.get(organizationId, id, nodeId)
      const results: NodeResult['result'][] = []
      let length = 0
      for (const row of found ? resultsOfItems.iterate(found.execution, found.node, item) : []) {
        results.push(shownResult(row))
        if (results.length === maxResults || (length += row.result?.length ?? 1) > resultsLength) break
      }
      return results
    },
    'executions.gathers': () => gathers.all(),
    'executions.inputs'(organizationId, id, maxLength) {
      const found = inputsOf.all(numberOf.get(organizationId, id), maxLength)
      return Object.fromEntries(found.map(({ nodeId, inputs }) => [nodeId, inputs]))
    },
    'executions.cached': (organizationId, key) => cached.get(key, organizationId),
  } satisfies Statements
}

/** The error of a node. A cancelled job has no error of its own. */
function errorOf({ status, jobStatus, error }: Pick<WorkRow, 'status' | 'jobStatus' | 'error'>): JobError | null {
  if (error !== null) return fromJson(error)
  return status === 'failed' && jobStatus === 'cancelled' ? cancelledError : null
}

const warningOf = ({ nodeId, error }: Pick<NodeRow, 'nodeId' | 'error'>): ExecutionRecord['warnings'][number] => ({
  nodeId,
  cause: fromJson(error) ?? cancelledError,
})

function nodeOf(
  {
    items: total,
    itemsCompleted: completed,
    itemsFailed: failed,
    itemsRunning: running,
    itemsWaiting: _waiting,
    itemsCost,
    ...row
  }: NodeRow,
  { waiting, awaits }: ReturnType<ListWaits['ofNode']>,
): ExecutionNode {
  const items = total === null ? null : { total, completed, failed, running, waiting }
  // All others that are completed have a job.
  const pinned = row.status === 'completed' && row.jobId === null
  const work = workOf(row)
  const node = {
    ...work,
    status: awaits === null ? work.status : ('waiting' as const),
    awaits: awaits ?? row.awaits,
    items,
    pinned,
    cost: work.cached || pinned ? 0 : items ? itemsCost : row.cost,
  }
  return pinned ? { ...node, startedAt: row.at, finishedAt: row.at } : node
}

function workOf<Row extends WorkRow>(row: Row) {
  const { at, jobStatus: _job, attempt, cached, error: _error, status: stored, ...facts } = row
  const status = statusWith(stored, row)
  const work = { ...facts, status, error: errorOf({ ...row, status }), cached: cached === 1 }
  return cached === 1 ? { ...work, attempts: 0, startedAt: at, finishedAt: at } : { ...work, attempts: attempt ?? 0 }
}
