import { z } from 'zod'
import { Dag, maxMembers, ParameterRecord } from '../../../core/dag/definition.ts'
import { invalid } from '../../../core/failure.ts'
import { definedMembers } from '../../../core/members.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullish,
  optional,
  optionalOneOf,
  optionalStringUpTo,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { conversationTask, tasksBy } from '../../../core/schemas/task.ts'
import { blockingOf } from '../../../core/workflows/diagnostics.ts'
import { WorkflowFields } from '../../../core/workflows/workflow-fields.ts'
import {
  cursorDescription,
  deletedAnswer,
  deletedObject,
  pageEnd,
  pageFields,
  pageLimit,
} from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { viewOf } from '../../views/view-of.ts'
import {
  changeOf,
  DiagnosticsObject,
  definitionOf,
  diagnosticsFor,
  findWorkflow,
  shownWorkflow,
  surveyFor,
  WorkflowObject,
} from '../../views/workflow-record.ts'

const route = routeOf({ tag: 'Workflows' })

const Version = z.object({
  version: integer('Number of the version. Read it with `GET /api/workflows/{id}?version=`.'),
  name: string('Name of the workflow in this version.'),
  created_at: integer('Unix seconds at which the version was stored.'),
})
const VersionPage = namedObject('WorkflowVersionPage', 'A page of the versions of a workflow.', {
  versions: array('The versions, newest first.', Version),
  ...pageFields,
})

const cursor = /^[1-9]\d{0,8}$/

const One = z.object({ id: string('Id of the workflow: `wf_…`.') })
const ofWorkflow = { params: One, errorCodes: ['not_found'] } as const
const Diagnosed = namedObject('DiagnosedWorkflow', 'A workflow with what is wrong or unusual in it.', {
  workflow: WorkflowObject,
  diagnostics: DiagnosticsObject,
})
const Page = namedObject('WorkflowPage', 'A page of workflows.', {
  workflows: array('The workflows, last changed first.', WorkflowObject),
  ...pageFields,
})

const example = {
  name: 'Picture of an answer',
  parameters: { topic: { type: 'string' as const } },
  dag: {
    nodes: {
      write: {
        model_id: 'infer/tiny-chat',
        task: conversationTask,
        inputs: { messages: [{ role: 'user', content: 'Describe ${input.topic} in one sentence.' }], max_tokens: 32 },
        outputs: ['choices[0].message.content'],
      },
      paint: {
        model_id: 'infer/demo',
        task: tasksBy('create-image')[0]!,
        inputs: { prompt: '${nodes.write.result.choices[0].message.content}', seed: 1 },
      },
    },
    edges: [{ from: 'write', to: 'paint' }],
  },
}

/** Returns the version in `If-Match`; undefined without one. */
function expectedVersion(exchange: ClientExchange) {
  const given = exchange.req.headers['if-match']
  if (given === undefined || given === '*') return undefined
  const version = /^(?:W\/)?"?(\d{1,9})"?$/.exec(given)?.[1]
  if (version === undefined)
    throw invalid('If-Match', '\'If-Match\' must be the version of the workflow that you read, such as "3".')
  return Number(version)
}

type WorkflowOwners = Owners<'accounts' | 'admission' | 'organizations' | 'workflows' | 'registry'>

async function change(exchange: ClientExchange, id: string, fields: Partial<WorkflowFields>, owners: WorkflowOwners) {
  await findWorkflow(id, exchange, owners)
  const { organizationId } = exchange.caller
  const changed = await owners.workflows.update(organizationId, id, changeOf(fields), expectedVersion(exchange))
  const workflow = changed ?? (await findWorkflow(id, exchange, owners))
  exchange.header('etag', `"${workflow.version}"`)
  return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(exchange, workflow, owners) }
}

async function create(exchange: ClientExchange, fields: WorkflowFields, owners: WorkflowOwners) {
  const workflow = await owners.workflows.create(exchange.caller.organizationId, definitionOf(fields))
  exchange.header('etag', `"${workflow.version}"`)
  return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(exchange, workflow, owners) }
}

const ToValidate = strictObject('WorkflowToValidate', 'A workflow to validate.', {
  dag: Dag,
  parameters: nullish(ParameterRecord, 'The input parameters by name. Default: none declared.'),
  region: WorkflowFields.shape.region,
  timeout: WorkflowFields.shape.timeout.describe('Maximum seconds of an execution. Has no effect here.'),
  budget: WorkflowFields.shape.budget,
  concurrency: WorkflowFields.shape.concurrency,
})
const Validation = namedObject('WorkflowValidation', 'Whether a workflow can be executed, and what was found.', {
  valid: boolean('Whether the workflow can be executed.'),
  diagnostics: DiagnosticsObject,
  order: nullable(
    z.array(z.array(z.string())),
    'Node ids in the order of execution, in groups that can run at the same time; null for a graph with a cycle.',
  ),
})
const Change = WorkflowFields.partial().meta({
  id: 'WorkflowChange',
  description: 'Fields of a workflow to change. Absent fields stay.',
})
const Deleted = deletedObject('WorkflowDeleted', 'Confirms that a workflow was deleted.', ['workflow', 'workflow'], {})
const Copy = strictObject('WorkflowCopy', 'How to copy a workflow.', {
  name: optional(
    WorkflowFields.shape.name,
    'Name of the copy. Default: the name of the original with `(copy)` after it.',
  ),
})

const collectionRoutes = (owners: WorkflowOwners) => [
  route('POST /api/workflows', 'user:write', {
    bucket: 'api',
    summary: 'Create workflow',
    description:
      'Stores a workflow. One that cannot be executed yet is stored too: `diagnostics` lists what is wrong, and errors among them prevent its execution.',
    members: maxMembers,
    body: WorkflowFields,
    example,
    response: Diagnosed,
    status: 201,
    handle: ({ body }, exchange) => create(exchange, body, owners),
  }),
  route('GET /api/workflows', 'user:read', {
    summary: 'List workflows',
    description: 'Returns the workflows of the organization, last changed first.',
    query: z.strictObject({
      q: optionalStringUpTo(256, 'Words that the name must contain.'),
      tag: optionalStringUpTo(64, 'Only workflows with this tag.'),
      include: optionalOneOf('`dag`: return the nodes and edges too.', ['dag']),
      limit: pageLimit,
      after: optionalStringUpTo(128, cursorDescription),
    }),
    response: Page,
    handle: async ({ query }, exchange) => {
      const { workflows, next } = await owners.workflows.list(
        exchange.caller.organizationId,
        definedMembers({
          limit: query.limit,
          after: query.after,
          search: query.q,
          tag: query.tag,
        }),
      )
      const shown =
        query.include === 'dag'
          ? await Promise.all(workflows.map(({ id }) => findWorkflow(id, exchange, owners)))
          : workflows
      return {
        workflows: shown.map(workflow => shownWorkflow(workflow, { withDag: query.include === 'dag' })),
        ...pageEnd(next),
      }
    },
  }),
  route('POST /api/workflows/validate', 'user:write', {
    bucket: 'api',
    summary: 'Validate workflow',
    description:
      'Checks a workflow without storing it: graph, references, types and models. Returns what is wrong and the order of execution.',
    members: maxMembers,
    body: ToValidate,
    example: { dag: example.dag, parameters: example.parameters },
    response: Validation,
    handle: async ({ body }, exchange) => {
      const { dag, parameters = null, region } = body
      const { diagnostics, order } = await surveyFor(exchange, { dag, parameters, region }, owners)
      return { valid: blockingOf(diagnostics).length === 0, diagnostics, order: order ? [...order] : null }
    },
  }),
]

const itemRoutes = (owners: WorkflowOwners) => [
  route('GET /api/workflows/:id', 'user:read', {
    summary: 'Get workflow',
    description:
      'Returns a workflow, or an earlier version of it, with what is wrong in it. The header `ETag` has its version.',
    ...ofWorkflow,
    query: z.strictObject({
      version: optional(z.coerce.number().int().min(1), 'Version to read. Default: the newest.'),
    }),
    response: Diagnosed,
    handle: async ({ params, query }, exchange) => {
      const workflow = await findWorkflow(params.id, exchange, owners, query.version)
      exchange.header('etag', `"${workflow.version}"`)
      return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(exchange, workflow, owners) }
    },
  }),
  route('PUT /api/workflows/:id', 'user:write', {
    bucket: 'api',
    summary: 'Replace workflow',
    description:
      'Stores a new version of a workflow. Fields that are not sent take their defaults. With `If-Match: "<version>"` the change is refused if the workflow was changed since that version.',
    errorCodes: ['not_found', 'version_conflict'],
    params: One,
    members: maxMembers,
    body: WorkflowFields,
    example,
    response: Diagnosed,
    handle: ({ params, body }, exchange) => {
      const { onFailure, ...definition } = definitionOf(body)
      return change(exchange, params.id, { ...definition, on_failure: onFailure }, owners)
    },
  }),
  route('PATCH /api/workflows/:id', 'user:write', {
    summary: 'Update workflow',
    description:
      'Stores a new version of a workflow in which the sent fields are changed. With `If-Match: "<version>"` the change is refused if the workflow was changed since that version.',
    errorCodes: ['not_found', 'version_conflict'],
    params: One,
    members: maxMembers,
    body: Change,
    example: { name: 'Another name' },
    response: Diagnosed,
    handle: ({ params, body }, exchange) => change(exchange, params.id, body, owners),
  }),
  route('DELETE /api/workflows/:id', 'user:write', {
    summary: 'Delete workflow',
    description:
      'Deletes a workflow with all versions. Its executions stay. Refused while one of them has not ended, unless `?force=true` cancels them.',
    errorCodes: ['not_found', 'conflict'],
    params: One,
    query: z.strictObject({
      force: z.enum(['true', 'false']).default('false').describe('`true`: cancel executions that have not ended.'),
    }),
    response: Deleted,
    handle: async ({ params, query }, exchange) => {
      const { id } = await findWorkflow(params.id, exchange, owners)
      await owners.workflows.remove(exchange.caller.organizationId, id, { cancel: query.force === 'true' })
      return deletedAnswer('workflow', id)
    },
  }),
  route('POST /api/workflows/:id/duplicate', 'user:write', {
    bucket: 'api',
    summary: 'Duplicate workflow',
    description: 'Stores a copy of a workflow, as version 1 of a new one.',
    ...ofWorkflow,
    body: Copy,
    example: { name: 'A copy' },
    response: Diagnosed,
    status: 201,
    handle: async ({ params, body }, exchange) => {
      const { onFailure, name, ...definition } = await findWorkflow(params.id, exchange, owners)
      const copy = { ...definition, name: body.name ?? `${name} (copy)`.slice(0, 256), on_failure: onFailure }
      return create(exchange, copy, owners)
    },
  }),
  route('GET /api/workflows/:id/versions', 'user:read', {
    summary: 'List workflow versions',
    description:
      'Returns the versions of a workflow, newest first. To restore one, read it and send it to `PUT /api/workflows/{id}`.',
    ...ofWorkflow,
    query: z.strictObject({
      limit: pageLimit,
      after: optionalStringUpTo(128, cursorDescription),
    }),
    response: VersionPage,
    handle: async ({ params, query: { limit, after } }, exchange) => {
      if (after !== undefined && !cursor.test(after)) throw invalid('after', "'after' is not a cursor of this list.")
      const { id, organizationId } = await findWorkflow(params.id, exchange, owners)
      const page = { limit, ...(after === undefined ? {} : { before: Number(after) }) }
      const { versions, next } = await owners.workflows.versions(organizationId, id, page)
      return {
        versions: versions.map(one => viewOf(Version, one, {})),
        ...pageEnd(next === null ? null : String(next)),
      }
    },
  }),
]

/** The routes of workflow definitions. Every change is a version; executions keep the version that they began with. */
export const workflowRoutes = (owners: WorkflowOwners) => [...collectionRoutes(owners), ...itemRoutes(owners)]
