import { conflict, Failure, invalid } from '../../failure.ts'
import type { Statements } from '../method-table.ts'
import type { NewWorkflow, WorkflowDefinition, WorkflowRecord, WorkflowVersion } from '../workflows.ts'
import { definitionOf, hasTag, pageOf, recordIf, selected } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

interface WorkflowRow extends Pick<WorkflowRecord, 'organizationId' | 'id' | 'version' | 'createdAt' | 'updatedAt'> {
  definition: string
  dag: string | null
}

/** The fields read for every workflow: all but the graph, which may be large. */
const factsOf = ({
  name,
  description,
  tags,
  region,
  timeout,
  onFailure,
  budget,
  concurrency,
  parameters,
}: WorkflowDefinition) =>
  JSON.stringify({
    name,
    description,
    tags,
    region,
    timeout,
    onFailure,
    budget,
    concurrency,
    parameters,
  } satisfies Omit<WorkflowDefinition, 'dag'>)

/** Returns a function that deletes a workflow with its versions, and returns whether there was one. */
export function openWorkflowRemoval(connection: Connection) {
  const dropVersions = connection.statement`DELETE FROM workflow_versions WHERE organization_id = ? AND workflow_id = ?`
  const drop = connection.statement`DELETE FROM workflows WHERE organization_id = ? AND id = ?`
  return (organizationId: string, id: string): boolean => {
    dropVersions.run(organizationId, id)
    return drop.run(organizationId, id).changes > 0
  }
}

/** The writer's commands for workflows. A stored version never changes. */
export function workflowCommands(connection: Connection, { queue }: Pick<WriteContext, 'queue'>) {
  const insert = connection.statement`INSERT INTO workflows (organization_id, id, name, folded, version, created_at,
    updated_at) VALUES (?, ?, ?, ?, 1, ?, ?)`
  const insertVersion = connection.statement`INSERT INTO workflow_versions (organization_id, workflow_id, version,
    created_at, definition, dag) VALUES (?, ?, ?, ?, ?, ?)`
  const current = connection.query<{ version: number; definition: string; dag: string }>`SELECT w.version, definition,
    dag FROM workflows AS w JOIN workflow_versions AS v ON v.organization_id = w.organization_id
    AND v.workflow_id = w.id AND v.version = w.version WHERE w.organization_id = ? AND w.id = ?`
  const update = connection.statement`UPDATE workflows SET name = ?, folded = ?, version = ?, updated_at = ?
    WHERE organization_id = ? AND id = ?`
  const running = connection.scalar<number>`SELECT count(*) FROM executions
    INDEXED BY executions_unfinished WHERE organization_id = ? AND workflow_id = ? AND finished_at IS NULL`
  const drop = openWorkflowRemoval(connection)

  return {
    addWorkflow(workflow: NewWorkflow): void {
      const { organizationId, id, name, createdAt: at } = workflow
      insert.run(organizationId, id, name, name.toLowerCase(), at, at)
      insertVersion.run(organizationId, id, 1, at, factsOf(workflow), JSON.stringify(workflow.dag))
    },

    /** Returns the new version. Undefined: there is no such workflow. */
    updateWorkflow(
      organizationId: string,
      id: string,
      { dag, ...facts }: Partial<WorkflowDefinition>,
      { expected, at }: { expected: number | undefined; at: number },
    ): number | undefined {
      const now = current.get(organizationId, id)
      if (!now) return undefined
      if (expected !== undefined && expected !== now.version)
        throw new Failure(
          'version_conflict',
          `The workflow ${id} was changed meanwhile: it is at version ${now.version}, not ${expected}. Read it again.`,
        )
      const next = { ...definitionOf({ definition: now.definition, dag: null }), ...facts }
      const version = now.version + 1
      update.run(next.name, next.name.toLowerCase(), version, at, organizationId, id)
      insertVersion.run(organizationId, id, version, at, factsOf(next), dag ? JSON.stringify(dag) : now.dag)
      queue.startNext(organizationId, id, at)
      return version
    },

    ...({
      'workflows.remove'(organizationId, id) {
        const unfinished = running.get(organizationId, id)!
        if (unfinished > 0)
          throw conflict(
            `The workflow ${id} has ${unfinished === 1 ? 'an execution' : `${unfinished} executions`} under way. Cancel them first, or delete it with ?force=true.`,
          )
        return drop(organizationId, id) || undefined
      },
    } satisfies Statements),
  }
}

/** How many rows a page scans for a rare tag. */
const maxScanned = 1_000

/** Reads of workflows; short statements on a read-only connection. */
export function workflowReads(connection: Connection) {
  const columns = `${selected('organizationId, id, createdAt, updatedAt', 'w')}, v.version`
  const from = `FROM workflows AS w JOIN workflow_versions AS v
    ON v.organization_id = w.organization_id AND v.workflow_id = w.id`
  const newest = connection.query<WorkflowRow>`SELECT definition, dag, ${columns} ${from} AND v.version = w.version
    WHERE w.organization_id = ? AND w.id = ?`
  const versioned = connection.query<WorkflowRow>`SELECT definition, dag, ${columns} ${from} WHERE w.organization_id = ?
    AND w.id = ? AND v.version = ?`
  const pages = connection.query<WorkflowRow>`SELECT definition, NULL AS dag, ${columns} ${from}
    AND v.version = w.version WHERE w.organization_id = ? AND (w.updated_at < ? OR (w.updated_at = ? AND w.id < ?))
    AND instr(w.folded, ?) > 0 ORDER BY w.updated_at DESC, w.id DESC LIMIT ?`

  const named = connection.scalar<string>`SELECT id FROM workflows WHERE organization_id = ? AND name = ? LIMIT 10`
  const versions = connection.query<WorkflowVersion>`SELECT version, json_extract(definition, '$.name') AS name,
    created_at AS createdAt FROM workflow_versions WHERE organization_id = ? AND workflow_id = ? AND version < ?
    ORDER BY version DESC LIMIT ?`

  const record = ({ definition, dag, ...row }: WorkflowRow): WorkflowRecord => ({
    ...definitionOf({ definition, dag }),
    ...row,
  })

  return {
    'workflows.find': (organizationId, id, version) =>
      recordIf(
        version === undefined ? newest.get(organizationId, id) : versioned.get(organizationId, id, version),
        record,
      ),
    'workflows.named': (organizationId, name) => named.all(organizationId, name),
    'workflows.versions'(organizationId, id, { limit, before = Number.MAX_SAFE_INTEGER }) {
      const { page, next } = pageOf(versions.all(organizationId, id, before, limit + 1), limit)
      return { versions: page, next: next?.version ?? null }
    },
    /** `after` is `<updated_at>.<id>` of the last workflow of the page before. */
    'workflows.list'(organizationId, { limit, after, search = '', tag }) {
      const [time, id] = after === undefined ? [String(Number.MAX_SAFE_INTEGER), '~'] : after.split('.')
      const at = Number(time)
      if (!Number.isSafeInteger(at) || !id) throw invalid('after', "'after' is not a cursor of this list.")
      const most = tag === undefined ? limit + 1 : maxScanned
      const found: WorkflowRow[] = []
      let scanned = 0
      let last: WorkflowRow | undefined
      // One more than the limit shows whether there is a next page.
      for (const row of pages.iterate(organizationId, at, at, id, search.toLowerCase(), most)) {
        scanned++
        last = row
        if (tag !== undefined && !hasTag(row.definition, tag)) continue
        if (found.push(row) > limit) break
      }
      const { page, next } = pageOf(found, limit)
      const end = next ?? (scanned === maxScanned ? last : undefined)
      return { workflows: page.map(record), next: end ? `${end.updatedAt}.${end.id}` : null }
    },
  } satisfies Statements
}
