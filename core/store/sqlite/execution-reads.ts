import type { ExecutionStatus, NodeStatus } from '../../dag/advance.ts'
import type { Statements } from '../method-table.ts'
import type { JobError, JobStatus, RequestWebhook } from '../store.ts'
import type { ExecutionNode, ExecutionRecord, WorkflowDefinition } from '../workflows.ts'
import { type Connection, scalar } from './database.ts'
import { cancelledError } from './job-end.ts'
import { openResultOf, type ResultRow } from './results.ts'
import { type UsageRow, usageColumns, usageOfRow } from './usage-columns.ts'

interface ExecutionRow extends UsageRow {
  number: number
  organization_id: string
  id: string
  token_id: string
  workflow_id: string | null
  workflow_version: number | null
  definition: string
  dag: string | null
  input_params: string
  priority: number
  status: ExecutionStatus
  error: string | null
  timeout_ms: number
  retention_ms: number | null
  metadata: string | null
  webhook: string | null
  parent_id: string | null
  origin: string
  created_at: number
  updated_at: number
  started_at: number | null
  timeout_at: number | null
  finished_at: number | null
  expires_at: number | null
  nodes: number
  running: number
  completed: number
  failed: number
  skipped: number
  cost: number
}

interface NodeRow {
  node_id: string
  task: string
  model_id: string
  status: NodeStatus
  at: number
  job_id: string | null
  cached: number
  job_status: JobStatus | null
  attempt: number | null
  error: string | null
  started_at: number | null
  finished_at: number | null
}

/** How many rows a page scans for a rare kind. */
const maxScanned = 1_000

/** Reads of executions; short statements on a read-only connection. */
export function executionReads(connection: Connection) {
  const columns = `number, organization_id, id, token_id, workflow_id, workflow_version, definition, input_params, priority,
    status, error, timeout_ms, retention_ms, metadata, webhook, parent_id, origin, created_at, updated_at, started_at, timeout_at, finished_at,
    expires_at, nodes, running, completed, failed, skipped, ${usageColumns}, cost`
  const from = 'FROM executions JOIN execution_plans ON execution = number'
  const one = connection.prepare<[string, string], ExecutionRow>(
    `SELECT dag, ${columns} ${from} WHERE organization_id = ? AND id = ?`,
  )
  // Without the graph, which may be large.
  const short = connection.prepare<[string, string], ExecutionRow>(
    `SELECT NULL AS dag, ${columns} ${from} WHERE organization_id = ? AND id = ?`,
  )
  const page = (where: string) =>
    connection.prepare<unknown[], ExecutionRow>(
      `SELECT NULL AS dag, ${columns} ${from}
       WHERE organization_id = ? AND id < ? ${where} ORDER BY id DESC LIMIT ?`,
    )
  const newest = page('')
  const newestOf = page('AND workflow_id = ?')
  const nodes = connection.prepare<[number], NodeRow>(
    `SELECT node_id, n.task, n.model_id, n.status, n.at, n.job_id, n.cached, jobs.status AS job_status, jobs.attempt,
       jobs.error, jobs.started_at, jobs.finished_at
     FROM execution_nodes AS n LEFT JOIN executions AS e ON e.number = n.execution
     LEFT JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = n.job_id
     WHERE n.execution = ? ORDER BY n.node`,
  )
  const toleratedFailures = connection.prepare<[number], { node_id: string; error: string | null }>(
    `SELECT n.node_id, jobs.error FROM execution_nodes AS n LEFT JOIN jobs ON jobs.execution = n.execution AND jobs.node = n.node
     WHERE n.execution = ? AND n.status = 'failed' ORDER BY n.node`,
  )
  const nextDue = scalar<[], number | null>(
    connection,
    'SELECT min(timeout_at) FROM executions WHERE finished_at IS NULL AND timeout_at IS NOT NULL',
  )
  const numberOf = scalar<[string, string], number>(
    connection,
    'SELECT number FROM executions WHERE organization_id = ? AND id = ?',
  )
  const resultOf = connection.prepare<
    [number, string],
    ResultRow & { status: NodeStatus; job_status: JobStatus | null; error: string | null }
  >(
    `SELECT n.status, jobs.status AS job_status, jobs.error, result, file, bytes
     FROM executions AS e JOIN execution_nodes AS n ON n.execution = e.number
     LEFT JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = n.job_id
     LEFT JOIN job_results ON job_results.number = jobs.number AND n.status = 'completed'
     WHERE e.number = ? AND n.node_id = ?`,
  )
  const shownResult = openResultOf(connection)
  const inputsOf = connection.prepare<[number, number], { node_id: string; inputs: string }>(
    `SELECT n.node_id, job_inputs.inputs FROM execution_nodes AS n JOIN executions AS e ON e.number = n.execution
     JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = n.job_id
     JOIN job_inputs ON job_inputs.number = jobs.number
     WHERE n.execution = ? AND n.status = 'completed' AND length(job_inputs.inputs) <= ?`,
  )
  const cached = scalar<[string, string], string>(
    connection,
    `SELECT job_id FROM cached_results WHERE key = ? AND EXISTS (
         SELECT 1 FROM jobs WHERE organization_id = ? AND jobs.id = cached_results.job_id AND status = 'completed')`,
  )

  function record(row: ExecutionRow): ExecutionRecord {
    return {
      id: row.id,
      organizationId: row.organization_id,
      tokenId: row.token_id,
      workflowId: row.workflow_id,
      workflowVersion: row.workflow_version,
      definition: {
        ...(JSON.parse(row.definition) as WorkflowDefinition),
        dag: row.dag === null ? { nodes: {}, edges: [] } : (JSON.parse(row.dag) as WorkflowDefinition['dag']),
      },
      inputParams: JSON.parse(row.input_params) as Record<string, unknown>,
      priority: row.priority,
      timeoutMs: row.timeout_ms,
      retentionMs: row.retention_ms,
      metadata: row.metadata,
      webhook: row.webhook === null ? null : (JSON.parse(row.webhook) as RequestWebhook),
      parentExecutionId: row.parent_id,
      origin: row.origin,
      createdAt: row.created_at,
      status: row.status,
      error: row.error === null ? null : (JSON.parse(row.error) as ExecutionRecord['error']),
      warnings: row.status === 'completed' && row.failed > 0 ? toleratedFailures.all(row.number).map(warningOf) : [],
      updatedAt: row.updated_at,
      startedAt: row.started_at,
      finishedAt: row.finished_at,
      timeoutAt: row.timeout_at,
      expiresAt: row.expires_at,
      progress: {
        total: row.nodes,
        completed: row.completed,
        failed: row.failed,
        skipped: row.skipped,
        running: row.running,
      },
      usage: usageOfRow(row),
      cost: row.cost,
    }
  }

  const find = (organizationId: string, id: string): ExecutionRecord | undefined => {
    const row = one.get(organizationId, id)
    return row && record(row)
  }

  return {
    'executions.find': find,
    'executions.summary'(organizationId, id) {
      const row = short.get(organizationId, id)
      return row && record(row)
    },
    'executions.nodes'(organizationId, id) {
      const number = numberOf.get(organizationId, id)
      return number === undefined ? [] : nodes.all(number).map(nodeOf)
    },
    'executions.list'(organizationId, { limit, after = '~', workflowId, status, createdAfter, metadata }) {
      const rows = workflowId
        ? newestOf.iterate(organizationId, after, workflowId, maxScanned)
        : newest.iterate(organizationId, after, maxScanned)
      const found: ExecutionRow[] = []
      let [scanned, last] = [0, '']
      // One more than the limit shows whether there is a next page.
      for (const row of rows) {
        if (createdAfter !== undefined && row.created_at < createdAfter) break
        scanned++
        last = row.id
        if (status && row.status !== status) continue
        if (metadata && !hasMetadata(row.metadata, metadata)) continue
        if (found.push(row) > limit) break
      }
      const executions = found.slice(0, limit).map(record)
      if (found.length > limit) return { executions, next: executions.at(-1)!.id }
      return { executions, next: scanned === maxScanned ? last : null }
    },
    'executions.nextDue': () => nextDue.get() ?? null,
    'executions.results'(organizationId, id, nodeIds) {
      const number = numberOf.get(organizationId, id)
      if (number === undefined) return {}
      return Object.fromEntries(
        nodeIds.flatMap(nodeId => {
          const row = resultOf.get(number, nodeId)
          if (!row) return []
          return [[nodeId, { status: row.status, result: shownResult(row), error: errorOf(row) }]]
        }),
      )
    },
    'executions.inputs'(organizationId, id, maxLength) {
      const number = numberOf.get(organizationId, id)
      if (number === undefined) return {}
      return Object.fromEntries(inputsOf.all(number, maxLength).map(({ node_id, inputs }) => [node_id, inputs]))
    },
    'executions.cached': (organizationId, key) => cached.get(key, organizationId),
  } satisfies Partial<Statements>
}

/** The error of a node. A cancelled job has no error of its own. */
function errorOf({ status, job_status, error }: Pick<NodeRow, 'status' | 'job_status' | 'error'>): JobError | null {
  if (error !== null) return JSON.parse(error) as JobError
  return status === 'failed' && job_status === 'cancelled' ? cancelledError : null
}

const warningOf = ({ node_id, error }: Pick<NodeRow, 'node_id' | 'error'>): ExecutionRecord['warnings'][number] => ({
  nodeId: node_id,
  cause: error === null ? cancelledError : (JSON.parse(error) as JobError),
})

const nodeOf = (row: NodeRow): ExecutionNode => ({
  nodeId: row.node_id,
  task: row.task,
  modelId: row.model_id,
  status: row.status === 'ready' && row.job_status === 'processing' ? 'running' : row.status,
  jobId: row.job_id,
  attempts: row.cached ? 0 : (row.attempt ?? 0),
  cached: row.cached === 1,
  error: errorOf(row),
  startedAt: row.cached ? row.at : row.started_at,
  finishedAt: row.cached ? row.at : row.finished_at,
})

function hasMetadata(text: string | null, expected: Record<string, string>): boolean {
  if (text === null) return false
  const metadata = JSON.parse(text) as Record<string, unknown>
  return Object.entries(expected).every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value)
}
