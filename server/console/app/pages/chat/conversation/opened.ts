import { branchOf } from '../../../../../../core/conversations/markdown.ts'
import { ApiFailure, refresh } from '../../../api/client.ts'
import { sessionEnded } from '../../../api/resumable.ts'
import { randomId } from '../../../components/random-id.ts'
import { chatText } from '../../../text/chat.ts'
import { apiMessages } from '../message/api-messages.ts'
import { emptyAnswer } from '../message/chunks.ts'
import type { Message } from '../message/message.ts'
import { type AnswerOptions, type AnswerRequest, streamAnswer, takeUpAnswer } from '../message/stream-answer.ts'
import type { Conversation, ConversationStore } from '../store/stored.ts'
import { openKeeper } from './keeper.ts'
import { forgetStream, noteStream, type StreamSource, takeUpStream } from './left-streams.ts'
import { type TreeMessage, withMessages } from './tree.ts'

const lengthOf = ({ text, reasoning = '' }: Message): number => text.length + reasoning.length

/** Whether a failure says that the server has the stream of a job no more. */
const isStreamGone = (failure: unknown): boolean =>
  failure instanceof ApiFailure && ['not_found', 'output_expired'].includes(failure.code)

/** Who answers: the path of the task, and of each model its id and the currency of its prices. */
export interface Answerers {
  path: string
  models: readonly { id: string; currency: string }[]
}

export interface OpenedState extends Conversation {
  /** Where it is kept; undefined before its first message. */
  id: string | undefined
  /** Ids of the answers that grow. */
  growing: ReadonlySet<string>
  /** Why the last change is not kept. */
  failure: Error | undefined
}

/**
 * A conversation that is open in this tab, and the only owner of its state. Its answers go on while another page of the
 * console is shown.
 */
export function openConversation(begun: Conversation, store: () => Promise<ConversationStore>, id?: string) {
  let state: OpenedState = { ...begun, id, growing: new Set(), failure: undefined }
  /** What a conversation begins with, as one of a job does, is not kept before something is said here. */
  let isKept = id !== undefined
  const listeners = new Set<() => void>()
  const stops = new Map<string, AbortController>()
  const set = (change: Partial<OpenedState>): void => {
    state = { ...state, ...change }
    for (const listener of listeners) listener()
  }
  const keeper = openKeeper({
    store,
    id,
    // If the tab is closed now, what an answer has so far is all of it.
    read: () => ({
      title: state.title,
      folder: state.folder,
      system: state.system,
      parameters: state.parameters,
      current: state.current,
      messages: state.messages.map(one => (state.growing.has(one.id) ? { ...one, stopped: true } : one)),
    }),
    kept(created) {
      set({ failure: undefined, ...created })
      if (created || state.growing.size === 0) void refresh('chat', 'list')
    },
    failed: failure => set({ failure }),
  })

  function put(message: TreeMessage, change: Partial<OpenedState> = {}): void {
    set({ messages: withMessages(state.messages, [message]), ...change })
    keeper.change([message.id], ...('current' in change ? (['current'] as const) : []))
  }

  /** Puts an answer, which grows until its stream has ended. */
  async function grow(first: TreeMessage, stream: (options: AnswerOptions) => Promise<Message>): Promise<void> {
    const { id: answerId, parent, at, model, currency } = first
    const own = new AbortController()
    stops.set(answerId, own)
    const signed = (latest: Message): TreeMessage => ({ ...latest, model, currency, id: answerId, parent, at })
    put(first, { growing: new Set([...state.growing, answerId]) })
    let latest: Message = first
    const report = (grown: Message) => {
      latest = grown
      put(signed(grown))
    }
    const kept = (jobId: string) => noteStream(answerId, { jobId })
    const ended = await stream({ report, kept, signal: own.signal }).catch(
      (failure: Error): Message => ({ ...latest, failure: failure.message }),
    )
    stops.delete(answerId)
    forgetStream(answerId)
    put(signed(ended), { growing: new Set([...state.growing].filter(one => one !== answerId)) })
  }

  function answer(
    id: string,
    parent: string,
    path: string,
    { id: model, currency }: Answerers['models'][number],
  ): void {
    const asked = apiMessages(state.system, branchOf(state.messages, parent))
    const request: AnswerRequest = { path, body: { model, ...state.parameters, messages: asked }, key: randomId() }
    noteStream(id, { request })
    void grow({ ...emptyAnswer, model, currency, id, parent, at: nowSeconds() }, options =>
      streamAnswer(request, options),
    )
  }

  /**
   * Goes on with an answer whose page was left while it grew, or before its head came. Where the server has its stream no
   * more, it stays as it is.
   */
  function takeUp(left: TreeMessage, source: StreamSource & { began: number }): void {
    const { stopped: _, ...first } = left
    const { firstMs } = left.figures ?? {}
    let longest: Message = left
    void grow(first, async ({ report, ...options }) => {
      // It is built again from its first event: what was there stays until it is as long again.
      const grown = (answer: Message) => {
        if (lengthOf(answer) < lengthOf(left)) return
        longest = { ...answer, stopped: true }
        report(answer)
      }
      const since = { sinceMs: Date.now() - source.began, firstMs }
      try {
        return 'jobId' in source
          ? await takeUpAnswer(source.jobId, since, { ...options, report: grown })
          : await streamAnswer(source.request, { ...options, report: grown }, since)
      } catch (thrown) {
        if (!isStreamGone(thrown)) throw thrown
        return lengthOf(longest) > 0 ? longest : { ...first, failure: chatText.answerGone }
      }
    })
  }

  /** Has each of the models answer; the branch goes on with the answer of the first. */
  function answerAll(parent: string, { path, models }: Answerers): void {
    for (const [index, model] of models.entries()) {
      const id = randomId()
      answer(id, parent, path, model)
      if (index === 0) setCurrent(id)
    }
  }

  function setCurrent(current: string | null): void {
    set({ current })
    if (isKept) keeper.change([], 'current')
  }

  function stop(reason?: Error): void {
    for (const own of stops.values()) own.abort(reason)
  }

  for (const message of begun.messages) {
    const left = takeUpStream(message.id)
    if (left) takeUp(message, left)
  }

  return {
    /** Another one for each that is opened. */
    key: randomId(),
    /** Tells the listener of changes. Returns the function that ends it. */
    watch: (listener: () => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    state: (): OpenedState => state,
    /** Adds messages, each after the one before, and has the models answer; `after`: not the last message but this one. */
    ask(said: readonly Message[], answerers: Answerers, after = state.current): void {
      isKept = true
      let parent = after
      for (const message of said) {
        const id = randomId()
        put({ ...message, id, parent, at: nowSeconds() }, { current: id })
        parent = id
      }
      answerAll(parent!, answerers)
      // What a person has written is not lost, however soon the page is left.
      void keeper.flush()
    },
    /** Has the question of an answer answered once more, as another version. */
    again({ parent }: TreeMessage, answerers: Answerers): void {
      isKept = true
      answerAll(parent!, answerers)
    },
    /** Puts others in the place of messages with the same ids, before anything is said here. */
    replace: (messages: readonly TreeMessage[]): void => set({ messages: withMessages(state.messages, messages) }),
    /** Shows the branch that ends with a message. */
    show: setCurrent,
    change(change: Partial<Pick<Conversation, 'title' | 'folder' | 'system' | 'parameters'>>): void {
      set(change)
      if (isKept) keeper.change([], ...(Object.keys(change) as (keyof Conversation)[]))
    },
    /** Tries again to keep what could not be kept. */
    keep: keeper.flush,
    stop: () => stop(),
    /** Stops everything: the session of the person has ended. */
    end(): void {
      keeper.end()
      stop(sessionEnded)
    },
    /** Stops everything and writes no more: the conversation is deleted. */
    drop(): void {
      keeper.drop()
      stop()
    },
  }
}
export type OpenedConversation = ReturnType<typeof openConversation>

const nowSeconds = (): number => Math.floor(Date.now() / 1_000)
