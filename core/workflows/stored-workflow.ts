import { Failure } from '../failure.ts'
import { isId } from '../ids.ts'
import type { WorkflowRecord, WorkflowStore } from '../store/workflows.ts'

/** The workflow with this id or name. Throws Failure `not_found`, and `invalid_value` for a name of several. */
export async function workflowOf(
  organizationId: string,
  { workflow: name, version }: { workflow: string; version?: number | undefined },
  workflows: Pick<WorkflowStore, 'find' | 'named'>,
): Promise<WorkflowRecord> {
  const ids = isId(name, 'wf_') ? [name] : await workflows.named(organizationId, name)
  if (ids.length > 1)
    throw new Failure(
      'invalid_value',
      `Several workflows have the name '${name}', among them ${ids.slice(0, 2).join(' and ')}. Use the id of one.`,
      { param: 'workflow' },
    )
  const found = ids[0] === undefined ? undefined : await workflows.find(organizationId, ids[0], version)
  if (found) return found
  const which = version === undefined ? '' : ` in version ${version}`
  throw new Failure('not_found', `There is no workflow '${name}'${which}. GET /api/workflows lists them.`, {
    param: 'workflow',
  })
}
