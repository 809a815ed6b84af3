import type { Failure } from '../../failure.ts'
import type { ChatResponse } from '../../schemas/chat.ts'
import type { ChatAnswerFacts, ChatChunk, ChatStreamForm } from '../chat-form.ts'
import { argumentsOf } from '../chat-terms.ts'

/** What a model said in one line of a stream, or in a whole answer. */
export interface OllamaPart {
  content: string
  thinking?: string
  toolCalls?: object[]
}

/** Makes the member that holds what the model said: `message` of a chat, `response` of a generation. */
export type ShowPart = (part: OllamaPart) => object

/** Epoch milliseconds. */
type Clock = () => number

interface Facts {
  /** The name of the model as it was requested. */
  model: string
  thinks: boolean
  show: ShowPart
}

export const nanoseconds = (ms: number): number => Math.max(0, Math.round(ms * 1e6))

type Usage = ChatResponse['usage'] | null | undefined

/**
 * Returns the counts and durations of an answer, in nanoseconds. `load_duration` is the time until a slot was free, in
 * which the model may have been loaded. Without a stream the time to read the prompt is part of `eval_duration`.
 */
function counts({ createdAt, queuedMs }: ChatAnswerFacts, usage: Usage, now: number, firstAt?: number): object {
  const begun = createdAt + queuedMs
  const prompt = firstAt === undefined ? 0 : firstAt - begun
  return {
    total_duration: nanoseconds(now - createdAt),
    load_duration: nanoseconds(queuedMs),
    prompt_eval_count: usage?.prompt_tokens ?? 0,
    prompt_eval_duration: nanoseconds(prompt),
    eval_count: usage?.completion_tokens ?? 0,
    eval_duration: nanoseconds(now - (firstAt ?? begun)),
  }
}

const doneReason = (reason: string | null): string => (reason === 'length' ? 'length' : 'stop')

interface Logprob {
  token: string
  logprob: number
  top_logprobs?: Logprob[]
}

/** Returns log probabilities without the bytes that OpenAI's form has. */
function logprobsOf(given: unknown): object {
  const list = (given as { content?: Logprob[] | null } | null | undefined)?.content
  if (!list || list.length === 0) return {}
  const plain = ({ token, logprob }: Logprob) => ({ token, logprob })
  return {
    logprobs: list.map(one => ({
      ...plain(one),
      top_logprobs: one.top_logprobs?.length ? one.top_logprobs.map(plain) : undefined,
    })),
  }
}

const toolCall = (id: string | undefined, name: string, text: string): object => ({
  id,
  function: { name, arguments: argumentsOf(text) },
})

/** Returns the whole answer in Ollama's form. */
export function ollamaAnswer(
  { model, thinks, show }: Facts,
  completion: ChatResponse,
  facts: ChatAnswerFacts,
  now: Clock,
): object {
  const [choice] = completion.choices
  const message = choice?.message
  const part: OllamaPart = {
    content: message?.content ?? message?.refusal ?? '',
    thinking: (thinks && message?.reasoning_content) || undefined,
    toolCalls: message?.tool_calls?.length
      ? message.tool_calls.map(({ id, function: f }) => toolCall(id, f.name, f.arguments))
      : undefined,
  }
  const at = now()
  return {
    model,
    created_at: new Date(at).toISOString(),
    ...show(part),
    done: true,
    done_reason: doneReason(choice?.finish_reason ?? null),
    ...logprobsOf(choice?.logprobs),
    ...counts(facts, completion.usage, at),
  }
}

/** Translates a streamed answer to Ollama's lines of JSON. A tool call is sent once it is complete. */
export function ollamaStream({ model, thinks, show }: Facts, facts: ChatAnswerFacts, now: Clock): ChatStreamForm {
  const calls = new Map<number, { id?: string; name: string; text: string }>()
  let firstAt: number | undefined
  let usage: Usage
  let reason: string | null = null

  const line = (part: OllamaPart, more: object): string => {
    const at = new Date(now()).toISOString()
    return `${JSON.stringify({ model, created_at: at, ...show(part), ...more })}\n`
  }
  function keepCalls(given: ChatChunk['choices'][number]['delta']['tool_calls']): void {
    for (const { index, id, function: f } of given ?? []) {
      const call = calls.get(index) ?? { name: '', text: '' }
      calls.set(index, call)
      if (id !== undefined) call.id = id
      call.name += f?.name ?? ''
      call.text += f?.arguments ?? ''
    }
  }
  return {
    contentType: 'application/x-ndjson',
    chunk({ choices: [choice], usage: used }) {
      usage = used ?? usage
      if (!choice) return ''
      const { delta, finish_reason, logprobs } = choice
      reason = finish_reason ?? reason
      keepCalls(delta.tool_calls)
      const content = delta.content ?? delta.refusal ?? ''
      const thinking = thinks ? (delta.reasoning_content ?? '') : ''
      if (content === '' && thinking === '') return ''
      firstAt ??= now()
      return line({ content, thinking: thinking || undefined }, { done: false, ...logprobsOf(logprobs) })
    },
    end() {
      const toolCalls = [...calls.values()].map(({ id, name, text }) => toolCall(id, name, text))
      const made = toolCalls.length > 0 ? line({ content: '', toolCalls }, { done: false }) : ''
      const at = now()
      return (
        made +
        line(
          { content: '' },
          { done: true, done_reason: doneReason(reason), ...counts(facts, usage, at, firstAt ?? at) },
        )
      )
    },
    failure: ({ message }: Failure) => `${JSON.stringify({ error: message })}\n`,
  }
}
