import { z } from 'zod'
import { Dag, mostMembers, Parameter } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import { blockingOf } from '../../core/workflows/diagnostics.ts'
import type { Call } from '../call.ts'
import { route } from '../route.ts'
import {
  changeOf,
  DiagnosticsObject,
  definitionOf,
  diagnosticsFor,
  findWorkflow,
  shownWorkflow,
  surveyFor,
  WorkflowFields,
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

async function change(call: Call, id: string, fields: Partial<WorkflowFields>) {
  const { store } = call.owners
  await findWorkflow(id, call)
  const changed = await store.workflows.update(call.caller.organizationId, id, changeOf(fields), {
    expected: expectedVersion(call),
    at: Date.now(),
  })
  const workflow = changed ?? (await findWorkflow(id, call))
  call.header('etag', `"${workflow.version}"`)
  return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(call, workflow) }
}

async function create(call: Call, fields: WorkflowFields) {
  const definition = definitionOf(fields)
  const workflow = await call.owners.store.workflows.create({
    ...definition,
    id: newId('wf'),
    organizationId: call.caller.organizationId,
    createdAt: Date.now(),
  })
  call.header('etag', `"${workflow.version}"`)
  return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(call, workflow) }
}

/** Workflows as they are written down. Every change is a version; executions keep the one that they began with. */
export const workflowRoutes = [
  route({
    method: 'POST',
    path: '/api/workflows',
    scope: 'user:write',
    bucket: 'api',
    tag,
    summary: 'Write a workflow down',
    description:
      'A workflow that cannot run yet is taken all the same: what is wrong or odd stands in `diagnostics`, and keeps it from being executed where it must.',
    members: mostMembers,
    body: WorkflowFields,
    example,
    response: Diagnosed,
    status: 201,
    handle: ({ body }, call) => create(call, body),
  }),
  route({
    method: 'GET',
    path: '/api/workflows',
    scope: 'user:read',
    tag,
    summary: 'List workflows, the one that was changed last first',
    query: z.object({
      q: z.string().max(256).optional().describe('Words that the name holds.'),
      include: z.enum(['dag']).optional(),
      limit: z.coerce.number().int().min(1).max(100).default(20),
      after: z.string().max(128).optional(),
    }),
    response: Page,
    handle: async ({ query }, call) => {
      const { store, caller } = { store: call.owners.store, caller: call.caller }
      const { workflows, next } = await store.workflows.list(caller.organizationId, {
        limit: query.limit,
        ...(query.after === undefined ? {} : { after: query.after }),
        ...(query.q === undefined ? {} : { search: query.q }),
      })
      const shown =
        query.include === 'dag' ? await Promise.all(workflows.map(({ id }) => findWorkflow(id, call))) : workflows
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
    members: mostMembers,
    body: z
      .object({ dag: Dag, parameters: z.record(z.string(), Parameter).nullish() })
      .meta({ id: 'WorkflowToValidate' }),
    example: { dag: example.dag, parameters: example.parameters },
    response: z
      .object({
        valid: z.boolean().describe('Whether nothing keeps it from being executed.'),
        diagnostics: DiagnosticsObject,
        order: z
          .array(z.array(z.string()))
          .nullable()
          .describe('Which nodes can run side by side, in order; null for a graph with a cycle.'),
      })
      .meta({ id: 'WorkflowValidation' }),
    handle: async ({ body }, call) => {
      const { dag, parameters = null } = body
      const { diagnostics, order } = await surveyFor(call, { dag, parameters })
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
    query: z.object({ version: z.coerce.number().int().min(1).optional() }),
    response: Diagnosed,
    handle: async ({ params, query }, call) => {
      const workflow = await findWorkflow(params.id, call, query.version)
      call.header('etag', `"${workflow.version}"`)
      return { workflow: shownWorkflow(workflow), diagnostics: await diagnosticsFor(call, workflow) }
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
    members: mostMembers,
    body: WorkflowFields,
    example,
    response: Diagnosed,
    handle: ({ params, body }, call) => {
      const { onFailure, ...definition } = definitionOf(body)
      return change(call, params.id, { ...definition, on_failure: onFailure })
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/workflows/:id',
    scope: 'user:write',
    tag,
    summary: 'Change fields of a workflow',
    params: One,
    members: mostMembers,
    body: WorkflowFields.partial().meta({ id: 'WorkflowChange' }),
    example: { name: 'Another name' },
    response: Diagnosed,
    handle: ({ params, body }, call) => change(call, params.id, body),
  }),
  route({
    method: 'DELETE',
    path: '/api/workflows/:id',
    scope: 'user:write',
    tag,
    summary: 'Delete a workflow; its executions stay',
    description: 'Refused while one of its executions goes on, unless `?force=true` cancels them.',
    params: One,
    query: z.object({ force: z.enum(['true', 'false']).default('false') }),
    response: z
      .object({ id: z.string(), object: z.literal('workflow'), deleted: z.literal(true) })
      .meta({ id: 'WorkflowDeleted' }),
    handle: async ({ params, query }, call) => {
      const { id } = await findWorkflow(params.id, call)
      if (query.force === 'true') await cancelAll(call, id)
      await call.owners.store.workflows.remove(call.caller.organizationId, id)
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
    body: z.object({ name: WorkflowFields.shape.name.optional() }).meta({ id: 'WorkflowCopy' }),
    example: { name: 'A copy' },
    response: Diagnosed,
    status: 201,
    handle: async ({ params, body }, call) => {
      const { onFailure, name, ...definition } = await findWorkflow(params.id, call)
      return create(call, { ...definition, name: body.name ?? `${name} (copy)`.slice(0, 256), on_failure: onFailure })
    },
  }),
]

/** Cancels every execution of the workflow that goes on. */
async function cancelAll(call: Call, workflowId: string): Promise<void> {
  const { store, executions } = call.owners
  const { organizationId } = call.caller
  for (const status of ['running', 'pending'] as const)
    for (let after: string | undefined, more = true; more; ) {
      const page = await store.executions.list(organizationId, {
        workflowId,
        status,
        limit: 100,
        ...(after === undefined ? {} : { after }),
      })
      for (const { id } of page.executions)
        await executions.cancel(organizationId, id).catch((thrown: unknown) => {
          if (Failure.from(thrown).code !== 'execution_already_finished') throw thrown
        })
      more = page.next !== null
      after = page.next ?? undefined
    }
}
