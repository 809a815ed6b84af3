import { isSmallBody } from '../../../core/cpu/small-body.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import type { CallAttempt } from '../../../core/jobs/call.ts'
import { callFallbacks } from '../../../core/jobs/call-fallbacks.ts'
import { catalogOfWork } from '../../../core/models/model-names.ts'
import type { Task, TextTask } from '../../../core/schemas/task.ts'
import { answerBound } from '../../../core/tasks/answer-bound.ts'
import { fetchFrom, withImages } from '../../../core/tasks/chat/images.ts'
import type { PreparedRequest } from '../../../core/tasks/engine-request.ts'
import { ask } from '../../../core/tasks/protocols/ask.ts'
import { taskRecord } from '../../../core/tasks/registry.ts'
import { scopeRefusal } from '../../http/access/auth.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { shownExecution } from '../../views/execution-record.ts'
import { findWorkflow } from '../../views/workflow-record.ts'
import { modelsFor } from '../../work/allowed-models.ts'
import { executionOptionsOf } from '../../work/execution-request.ts'
import type { InferenceOwners } from '../../work/inference.ts'
import { endOfFailure, nameModel } from '../../work/run-call.ts'
import { type SubmitterOwners, submitters } from '../../work/submitters.ts'
import { failedResult, jobResult, maxAnswerBytes, type ToolResult, valueResult } from './content.ts'
import { followExecution, followJob } from './follow-work.ts'
import { type McpReply, RpcError, rpcCodes } from './message.ts'
import { taskOfTool, workflowOfTool } from './tools.ts'

/**
 * Runs a request of a text task as a synchronous call and resolves with the whole answer, as JSON. Rejects with the
 * Failure of the request; that is `cancelled` if the client disconnected or cancelled it.
 */
async function runTextCall(
  exchange: ClientExchange,
  task: TextTask,
  request: object,
  { admission, config, cpu, jobs, media, registry, throughput }: Omit<InferenceOwners, 'idempotency' | 'timings'>,
): Promise<unknown> {
  admission.requireRoom()
  const createdAt = Date.now()
  const body = Buffer.from(JSON.stringify(request))
  // A large body is transferred to a thread, and a fallback needs it again.
  const kept = registry.hasFallbacks && !isSmallBody(body) ? Buffer.from(body) : body
  const checked = await cpu.prepare(task, body, registry.catalog(), config.limits, { strict: true })
  const { modelId } = checked
  const admitted = admission.admit(exchange.caller, { kind: 'call', task, modelId, estimate: () => checked.estimate! })
  const complete = (one: PreparedRequest) => withImages(one, fetchFrom(media, exchange.sender), cpu)
  // The caller receives nothing before the whole answer is there.
  const fallbacks = callFallbacks(
    exchange.caller,
    admitted,
    async work => {
      const catalog = catalogOfWork(registry.catalog(), work)
      const other = await cpu.prepare(task, Buffer.from(kept), catalog, config.limits, { strict: true })
      const estimate = () => other.estimate!
      const taken = admission.admit(exchange.caller, { kind: 'call', task, modelId: work.modelId, estimate })
      return { admitted: taken, attempt: attemptWith(await complete(other)) }
    },
    { admission, jobs },
  )
  if (checked.images) admission.requireQueueRoom(exchange.caller, admitted)
  // Fetched before the call takes a slot that others could use.
  const prepared = await complete(checked)
  if (!fallbacks) exchange.releaseBody()
  let answer: string | Uint8Array = ''

  function attemptWith({ path, bodies, answerFormat, unstored, several }: PreparedRequest): CallAttempt {
    return async (lease, call) => {
      const answers: Buffer[] = []
      try {
        const maxBytes = answerBound(answerFormat, config.limits)
        for (const one of bodies)
          answers.push(
            await ask(lease, path, one, maxBytes, exchange.abortSource, {
              unstored: unstored === true,
              several: several === true,
            }),
          )
      } catch (thrown) {
        return endOfFailure(thrown)
      }
      const shaped = await cpu.shape(answers, answerFormat)
      throughput.used(lease.modelId, shaped.usage)
      exchange.abortSource.throwIfAborted()
      answer = shaped.body
      nameModel(exchange, call)
      return { how: 'completed', usage: shaped.usage }
    }
  }

  const { abortSource: caller, traceparent } = exchange
  const call = { admitted, createdAt, waitMs: Number.POSITIVE_INFINITY, traceparent, caller, fallbacks }
  const { end } = await jobs.calls.run(call, attemptWith(prepared))
  exchange.releaseBody()
  if (end.how === 'cancelled') throw new Failure('cancelled', 'The request was cancelled.')
  if (answer.length > maxAnswerBytes)
    throw new Failure(
      'payload_too_large',
      `The answer has ${answer.length} bytes, and a tool returns at most ${maxAnswerBytes}. Send fewer inputs at a time.`,
    )
  return JSON.parse(typeof answer === 'string' ? answer : Buffer.from(answer).toString('utf8'))
}

export type ToolOwners = SubmitterOwners & InferenceOwners & Owners<'executions' | 'files' | 'limiter' | 'workflows'>

export interface McpToolCall {
  name: string
  input: Record<string, unknown>
  reply: McpReply
  /** Whether the client has cancelled the request. */
  isCancelled: () => boolean
}

const unknownTool = (name: string) =>
  new RpcError(rpcCodes.invalidParams, `There is no tool '${name.slice(0, 128)}'. tools/list returns those that exist.`)

/**
 * Runs a tool and resolves with its result. A request that is refused or fails is a result too, which the model of the
 * client can read. Rejects with RpcError for an unknown tool.
 */
export async function callTool(exchange: ClientExchange, tool: McpToolCall, owners: ToolOwners): Promise<ToolResult> {
  const task = taskOfTool(tool.name)
  const workflowId = workflowOfTool(tool.name)
  if (task === undefined && workflowId === undefined) throw unknownTool(tool.name)
  const unscoped = scopeRefusal(exchange.caller, 'user:write')
  if (unscoped) return failedResult(unscoped)
  // Every tool begins work, so it counts as a submission besides the request of the protocol.
  const entry = await owners.limiter.enter(exchange.caller, 'jobs')
  try {
    if (entry.refused) throw entry.refused
    return task === undefined
      ? await runWorkflow(exchange, workflowId!, tool, owners)
      : await runTask(exchange, task, tool, owners)
  } catch (thrown) {
    if (thrown instanceof RpcError) throw thrown
    const failure = Failure.from(thrown)
    if (failure.code === 'internal_error' || failure.code === 'shutting_down') throw failure
    return failedResult(failure)
  } finally {
    entry.leave()
  }
}

async function runTask(exchange: ClientExchange, task: Task, tool: McpToolCall, owners: ToolOwners) {
  const { model = modelsFor(task, exchange, owners)[0], stream: _, ...inputs } = tool.input
  if (typeof model !== 'string')
    throw invalid('model', `'model' must be the id of a model. tools/list returns the possible ones.`, 'invalid_type')
  const { runner } = taskRecord(task)
  if (runner === 'text')
    return valueResult((await runTextCall(exchange, task as TextTask, { ...inputs, model }, owners)) as object)
  const creation = { task, modelId: model, inputs, terms: {}, body: undefined }
  const job = await submitters[runner].create(exchange, creation, owners)
  await tool.reply.begin()
  return jobResult(exchange, await followJob(exchange, job, tool.reply, tool.isCancelled, owners), owners)
}

async function runWorkflow(
  exchange: ClientExchange,
  id: string,
  tool: McpToolCall,
  owners: ToolOwners,
): Promise<ToolResult> {
  const workflow = await findWorkflow(id, exchange, owners).catch((thrown: unknown) => {
    // A foreign workflow is like one that does not exist.
    throw Failure.from(thrown).code === 'not_found' ? unknownTool(tool.name) : thrown
  })
  const version = { id: workflow.id, version: workflow.version }
  const terms = { input_params: tool.input, priority: 0 }
  const { execution } = await owners.executions.execute(executionOptionsOf(exchange, workflow, version, terms, owners))
  await tool.reply.begin()
  const ended = await followExecution(exchange, execution, tool.reply, tool.isCancelled, owners)
  const { outputs, status, error } = await shownExecution(ended, exchange, owners, { withNodes: false })
  if (status === 'completed') return valueResult({ execution_id: ended.id, outputs: outputs ?? {} })
  const why = error?.message ?? `The execution ${ended.id} was cancelled.`
  return {
    content: [{ type: 'text', text: why }],
    structuredContent: { execution_id: ended.id, status },
    isError: true,
  }
}
