import { z } from 'zod'
import { Dag, maxMembers, ParameterRecord } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { blockingOf } from '../../core/workflows/diagnostics.ts'
import { WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import {
  changeOf,
  DiagnosticsObject,
  definitionOf,
  diagnosticsFor,
  findWorkflow,
  shownWorkflow,
  surveyFor,
  WorkflowObject,
} from './workflow-record.ts'

const tag = 'Workflows'
const One = z.object({ id: z.string() })
const Diagnosed = z
  .object({ workflow: WorkflowObject, diagnostics: DiagnosticsObject })
  .meta({ id: 'DiagnosedWorkflow' })
const Page = z
  .object({ workflows: z.array(WorkflowObject), has_more: z.boolean(), next_cursor: z.string().nullable() })
  .meta({ id: 'WorkflowPage' })

const example = {
  name: 'Picture of an answer',
  parameters: { topic: { type: 'string' as const } },
  dag: {
    nodes: {
      write: {
        model_id: 'infer/tiny-chat',
        task: 'std/chat-completion',
        inputs: { messages: [{ role: 'user', content: 'Describe ${input.topic} in one sentence.' }], max_tokens: 32 },
        outputs: ['choices[0].message.content'],
      },
      paint: {
        model_id: 'infer/demo',
        task: 'slug/text-to-image',
        inputs: { prompt: '${nodes.write.result.choices[0].message.content}', seed: 1 },
      },
    },
    edges: [{ from: 'write', to: 'paint' }],
  },
}

/** The version that `If-Match` names; undefined without one. */
function expectedVersion(call: Call): number | undefined {
  const given = call.req.headers['if-match']
  if (given === undefined || given === '*') return undefined
  const version = /^(?:W\/)?"?(\d{1,9})"?$/.exec(given)?.[1]
  if (version === undefined)
    throw new Failure('invalid_value', '\'If-Match\' is the version of the workflow that was read, such as "3".', {
      param: 'If-Match',
    })
  return Number(version)
}

type WorkflowOwners = Pick<Owners, 'admission' | 'workflows' | 'registry'>

async function change(call: Call, id: string, fields: Partial<WorkflowFields>, owners: WorkflowOwners) {
  await findWorkflow(id, call, owners)
  const { organizationId } = call.caller
  const changed = await owners.workflows.update(organizationId, id, changeOf(fields), expectedVersion(call))
  const workflow = changed ?? (await findWorkflow(id, call, owners))
  call.header('etag', `"${workflow.version}"`)
  return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(call, workflow, owners) }
}

async function create(call: Call, fields: WorkflowFields, owners: WorkflowOwners) {
  const workflow = await owners.workflows.create(call.caller.organizationId, definitionOf(fields))
  call.header('etag', `"${workflow.version}"`)
  return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(call, workflow, owners) }
}

const ToValidate = z
  .strictObject({ dag: Dag, parameters: ParameterRecord.nullish() })
  .meta({ id: 'WorkflowToValidate' })
const Validation = z
  .object({
    valid: z.boolean().describe('Whether nothing keeps it from being executed.'),
    diagnostics: DiagnosticsObject,
    order: z
      .array(z.array(z.string()))
      .nullable()
      .describe('Which nodes can run side by side, in order; null for a graph with a cycle.'),
  })
  .meta({ id: 'WorkflowValidation' })
const Change = WorkflowFields.partial().meta({ id: 'WorkflowChange' })
const Deleted = z
  .object({ id: z.string(), object: z.literal('workflow'), deleted: z.literal(true) })
  .meta({ id: 'WorkflowDeleted' })
const Copy = z.strictObject({ name: WorkflowFields.shape.name.optional() }).meta({ id: 'WorkflowCopy' })

/** Workflows as they are written down. Every change is a version; executions keep the one that they began with. */
export const workflowRoutes = (owners: WorkflowOwners) => [
  route({
    method: 'POST',
    path: '/api/workflows',
    scope: 'user:write',
    bucket: 'api',
    tag,
    summary: 'Write a workflow down',
    description:
      'A workflow that cannot run yet is taken all the same: what is wrong or odd stands in `diagnostics`, and keeps it from being executed where it must.',
    members: maxMembers,
    body: WorkflowFields,
    example,
    response: Diagnosed,
    status: 201,
    handle: ({ body }, call) => create(call, body, owners),
  }),
  route({
    method: 'GET',
    path: '/api/workflows',
    scope: 'user:read',
    tag,
    summary: 'List workflows, the one that was changed last first',
    query: z.strictObject({
      q: z.string().max(256).optional().describe('Words that the name holds.'),
      include: z.enum(['dag']).optional(),
      limit: z.coerce.number().int().min(1).max(100).default(20),
      after: z.string().max(128).optional(),
    }),
    response: Page,
    handle: async ({ query }, call) => {
      const { workflows, next } = await owners.workflows.list(call.caller.organizationId, {
        limit: query.limit,
        ...(query.after === undefined ? {} : { after: query.after }),
        ...(query.q === undefined ? {} : { search: query.q }),
      })
      const shown =
        query.include === 'dag'
          ? await Promise.all(workflows.map(({ id }) => findWorkflow(id, call, owners)))
          : workflows
      return {
        workflows: shown.map(workflow => shownWorkflow(workflow, { withDag: query.include === 'dag' })),
        has_more: next !== null,
        next_cursor: next,
      }
    },
  }),
  route({
    method: 'POST',
    path: '/api/workflows/validate',
    scope: 'user:write',
    bucket: 'api',
    tag,
    summary: 'Look a workflow over without writing it down',
    members: maxMembers,
    body: ToValidate,
    example: { dag: example.dag, parameters: example.parameters },
    response: Validation,
    handle: async ({ body }, call) => {
      const { dag, parameters = null } = body
      const { diagnostics, order } = await surveyFor(call, { dag, parameters }, owners)
      return { valid: blockingOf(diagnostics).length === 0, diagnostics, order: order ? [...order] : null }
    },
  }),
  route({
    method: 'GET',
    path: '/api/workflows/:id',
    scope: 'user:read',
    tag,
    summary: 'Read a workflow, or an earlier version of it',
    params: One,
    query: z.strictObject({ version: z.coerce.number().int().min(1).optional() }),
    response: Diagnosed,
    handle: async ({ params, query }, call) => {
      const workflow = await findWorkflow(params.id, call, owners, query.version)
      call.header('etag', `"${workflow.version}"`)
      return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(call, workflow, owners) }
    },
  }),
  route({
    method: 'PUT',
    path: '/api/workflows/:id',
    scope: 'user:write',
    bucket: 'api',
    tag,
    summary: 'Write a workflow anew',
    description:
      'What is not sent takes its default. `If-Match: "<version>"` refuses the change where another one came first.',
    params: One,
    members: maxMembers,
    body: WorkflowFields,
    example,
    response: Diagnosed,
    handle: ({ params, body }, call) => {
      const { onFailure, ...definition } = definitionOf(body)
      return change(call, params.id, { ...definition, on_failure: onFailure }, owners)
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/workflows/:id',
    scope: 'user:write',
    tag,
    summary: 'Change fields of a workflow',
    params: One,
    members: maxMembers,
    body: Change,
    example: { name: 'Another name' },
    response: Diagnosed,
    handle: ({ params, body }, call) => change(call, params.id, body, owners),
  }),
  route({
    method: 'DELETE',
    path: '/api/workflows/:id',
    scope: 'user:write',
    tag,
    summary: 'Delete a workflow; its executions stay',
    description: 'Refused while one of its executions goes on, unless `?force=true` cancels them.',
    params: One,
    query: z.strictObject({ force: z.enum(['true', 'false']).default('false') }),
    response: Deleted,
    handle: async ({ params, query }, call) => {
      const { id } = await findWorkflow(params.id, call, owners)
      await owners.workflows.remove(call.caller.organizationId, id, { cancel: query.force === 'true' })
      return { id, object: 'workflow' as const, deleted: true as const }
    },
  }),
  route({
    method: 'POST',
    path: '/api/workflows/:id/duplicate',
    scope: 'user:write',
    bucket: 'api',
    tag,
    summary: 'Copy a workflow',
    params: One,
    body: Copy,
    example: { name: 'A copy' },
    response: Diagnosed,
    status: 201,
    handle: async ({ params, body }, call) => {
      const { onFailure, name, ...definition } = await findWorkflow(params.id, call, owners)
      const copy = { ...definition, name: body.name ?? `${name} (copy)`.slice(0, 256), on_failure: onFailure }
      return create(call, copy, owners)
    },
  }),
]
