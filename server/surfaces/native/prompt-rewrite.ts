import { z } from 'zod'
import { canonicalHash } from '../../../core/canonical.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import type { CallAttempt } from '../../../core/jobs/call.ts'
import { callFallbacks } from '../../../core/jobs/call-fallbacks.ts'
import type { PreparedRewrite } from '../../../core/jobs/prompt-rewriting.ts'
import type { NamedWork } from '../../../core/models/model-names.ts'
import {
  array,
  integer,
  namedObject,
  object,
  optional,
  optionalStringUpTo,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { conversationTask, generationTasks, Task } from '../../../core/schemas/task.ts'
import { taskRecord, taskRecords } from '../../../core/tasks/registry.ts'
import { defaultRewriteLength, rewriteEstimate } from '../../../core/tasks/rewriting/rewrite-request.ts'
import type { TaskRecord } from '../../../core/tasks/task.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { answeredBefore, idempotencyKeyOf, keepAnswer } from '../../http/request/idempotency.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { routeOf } from '../../http/request/route.ts'
import { TaskName } from '../../views/task-schemas.ts'
import { runCall } from '../../work/run-call.ts'
import { noRewriter } from '../../work/submit-generation.ts'

const route = routeOf({ tag: 'Generation' })

/** Tasks whose prompts can be rewritten: they make images or videos. */
const rewritten: readonly Task[] = taskRecords
  .filter(({ category }) => category === 'image' || category === 'video')
  .map(({ id }) => id)
const [defaultTask] = generationTasks
const RewrittenTask = TaskName.refine(
  task => task === undefined || rewritten.includes(task),
  `must be one of: ${rewritten.join(', ')}.`,
)

const text = z.string().trim().min(1)
const RewriteRequest = strictObject('PromptRewriteRequest', 'A prompt to rewrite.', {
  prompt: text.max(10_000).describe('The prompt to rewrite.'),
  model_id: optionalStringUpTo(
    128,
    'Id of the model for which the prompt is. Its first image or video task is the task, unless one is sent.',
  ),
  task: RewrittenTask.describe(`Task for which the prompt is. Default: that of \`model_id\`, else \`${defaultTask}\`.`),
  style: optional(text.max(200), 'Style of the result, such as `cinematic`.'),
  n: z.int().min(1).max(4).default(1).describe('How many prompts to write.'),
  image_url: optional(
    z.string().min(1),
    'Image that belongs to the prompt: an http(s) URL, a `data:` URL or the id of a file. Only with a rewriting model that can see images.',
  ),
  language: optional(text.max(64), 'Language of the new prompt, such as `en`. Default: that of the prompt.'),
  max_length: z
    .int()
    .min(20)
    .max(10_000)
    .default(defaultRewriteLength)
    .describe('Most characters of each prompt. A longer one is cut after a sentence or a word.'),
  rewriter_model: optionalStringUpTo(
    128,
    'Id of the chat model that rewrites. Default: `prompt_rewriting.model` in `infer.yaml`.',
  ),
})
type RewriteRequest = z.output<typeof RewriteRequest>

const RewrittenPrompt = namedObject('RewrittenPrompt', 'A prompt and its new versions.', {
  original_prompt: string('The prompt of the request.'),
  rewritten_prompt: string('The new prompt.'),
  prompt: string('The same as `rewritten_prompt`.'),
  alternatives: array(
    'Further prompts, `n` - 1 of them, or fewer if the model wrote fewer different ones.',
    z.string(),
  ),
  model: string('Id of the chat model that rewrote.'),
  task: Task.describe('The task for which the prompts are.'),
  usage: object('Usage of the chat model.', {
    prompt_tokens: integer('Tokens that the chat model read.'),
    completion_tokens: integer('Tokens that the chat model wrote.'),
    total_tokens: integer('Sum of both.'),
  }),
})

type RewriteOwners = Owners<'admission' | 'config' | 'idempotency' | 'jobs' | 'registry' | 'rewriting' | 'timings'>

/** The task of the prompt. Throws Failure `model_not_found` and `unsupported_task` for a model that does not fit. */
function taskOf(
  exchange: ClientExchange,
  { model_id, task }: RewriteRequest,
  { admission, registry }: Owners<'admission' | 'registry'>,
): TaskRecord {
  if (model_id === undefined) return taskRecord(task ?? defaultTask)
  const param = 'model_id'
  const model = admission.allowed(exchange.caller, model_id) ? registry.catalog().get(model_id) : undefined
  if (!model) throw invalid(param, `The model '${model_id}' does not exist here.`, 'model_not_found')
  const found = task === undefined ? model.tasks.find(one => rewritten.includes(one)) : task
  if (found !== undefined && model.tasks.includes(found)) return taskRecord(found)
  const what = task === undefined ? 'images or videos' : taskRecord(task).title
  throw invalid(param, `The model '${model_id}' does not do ${what}, so there is no prompt for it.`, 'unsupported_task')
}

/** Returns the chat model, as the field that named it. Throws Failure `no_capacity` if there is none. */
function rewriterOf({ rewriter_model }: RewriteRequest, { config }: Owners<'config'>) {
  const modelId = rewriter_model ?? config.prompt_rewriting?.model
  // Like a missing program: the request is right, and no retry helps until somebody changes the server.
  if (modelId === undefined) throw new Failure('no_capacity', noRewriter, { final: true })
  return { modelId, param: rewriter_model === undefined ? null : 'rewriter_model' }
}

/** Admits the call of the chat model, or that of its fallback. A refusal names the field that named the model. */
function admit(
  exchange: ClientExchange,
  body: RewriteRequest,
  owners: Owners<'admission' | 'config'>,
  work?: NamedWork,
) {
  const { modelId: named, param } = rewriterOf(body, owners)
  const modelId = work?.modelId ?? named
  try {
    const { prompt, n: count, max_length: maxLength } = body
    const estimate = () => rewriteEstimate({ prompt, count, maxLength })
    return owners.admission.admit(exchange.caller, { kind: 'call', task: conversationTask, modelId, param, estimate })
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.param !== 'model') throw thrown
    throw failure.with({ param: param ?? undefined })
  }
}

async function rewrite(exchange: ClientExchange, body: RewriteRequest, createdAt: number, owners: RewriteOwners) {
  const { prompt, n, style, language, max_length, image_url } = body
  const task = taskOf(exchange, body, owners)
  const admitted = admit(exchange, body, owners)
  const prepare = (work?: NamedWork) =>
    owners.rewriting.prepare({
      modelId: admitted.requestedModel ?? admitted.model.id,
      work,
      sender: exchange.sender,
      caller: exchange.abortSource,
      prompt,
      task,
      count: n,
      maxLength: max_length,
      style,
      language,
      imageUrl: image_url,
    })
  let answered: { by: PreparedRewrite; modelId: string; jobId: string } | undefined
  const attemptWith =
    (by: PreparedRewrite): CallAttempt =>
    (lease, running) => {
      answered = { by, modelId: running.modelId, jobId: running.id }
      return by.attempt(lease, running)
    }
  // The caller receives nothing before the prompts are there.
  const fallbacks = callFallbacks(
    exchange.caller,
    admitted,
    async work => {
      const taken = admit(exchange, body, owners, work)
      return { admitted: taken, attempt: attemptWith(await prepare(work)) }
    },
    owners,
  )
  if (image_url !== undefined) owners.admission.requireQueueRoom(exchange.caller, admitted)
  const prepared = await prepare()
  const { waitMs } = preferenceOf(exchange.req.headers.prefer)
  await runCall(exchange, { admitted, createdAt, waitMs, stream: false, fallbacks }, attemptWith(prepared), owners)
  const { by, modelId, jobId } = answered!
  const [first, ...alternatives] = by.prompts
  const { inputTokens, outputTokens } = by.usage
  const answer: z.input<typeof RewrittenPrompt> = {
    original_prompt: prompt,
    rewritten_prompt: first!,
    prompt: first!,
    alternatives,
    model: modelId,
    task: task.id,
    usage: {
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
    },
  }
  const json = JSON.stringify(answer)
  await keepAnswer(exchange, json, jobId)
  return json
}

export const promptRewriteRoutes = (owners: RewriteOwners) => [
  route('POST /api/prompt-rewrite', 'user:write', {
    // The specification counts only other paths as job submissions.
    bucket: 'api',
    summary: 'Rewrite prompt',
    description:
      'Lets a chat model write a better prompt for an image or a video, in up to four versions. The operator chooses the chat model: `prompt_rewriting` in `infer.yaml`. The call waits in the queue of that model and is metered like a chat. `enable_prompt_expansion` of an image or video request does the same before the request runs.',
    errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorGroups.media],
    body: RewriteRequest,
    example: { prompt: 'a cat', task: 'slug/text-to-video', style: 'cinematic', rewriter_model: 'infer/tiny-chat' },
    response: RewrittenPrompt,
    async handle({ body }, exchange) {
      const createdAt = Date.now()
      owners.admission.requireRoom()
      if (idempotencyKeyOf(exchange) !== undefined) {
        exchange.bodyHash = canonicalHash(body)
        if (await answeredBefore(exchange, owners)) return new JsonText('')
      }
      return new JsonText(await rewrite(exchange, body, createdAt, owners))
    },
  }),
]
