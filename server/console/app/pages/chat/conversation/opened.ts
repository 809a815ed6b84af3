import { branchOf } from '../../../../../../core/conversations/markdown.ts'
import { refresh } from '../../../api/client.ts'
import { randomId } from '../../../components/random-id.ts'
import { apiMessages } from '../message/api-messages.ts'
import { emptyAnswer } from '../message/chunks.ts'
import type { Message } from '../message/message.ts'
import { streamAnswer } from '../message/stream-answer.ts'
import type { Conversation, ConversationStore } from '../store/stored.ts'
import { openKeeper } from './keeper.ts'
import { type TreeMessage, withMessages } from './tree.ts'

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

  async function answer(
    answerId: string,
    parent: string,
    path: string,
    { id: model, currency }: Answerers['models'][number],
  ): Promise<void> {
    const own = new AbortController()
    stops.set(answerId, own)
    const at = nowSeconds()
    const signed = (latest: Message): TreeMessage => ({ ...latest, model, currency, id: answerId, parent, at })
    put(signed(emptyAnswer), { growing: new Set([...state.growing, answerId]) })
    const asked = apiMessages(state.system, branchOf(state.messages, parent))
    let latest = emptyAnswer
    const report = (grown: Message) => {
      latest = grown
      put(signed(grown))
    }
    const ended = await streamAnswer(path, { model, ...state.parameters, messages: asked }, report, own.signal).catch(
      (failure: Error): Message => ({ ...latest, failure: failure.message }),
    )
    stops.delete(answerId)
    put(signed(ended), { growing: new Set([...state.growing].filter(one => one !== answerId)) })
  }

  /** Has each of the models answer; the branch goes on with the answer of the first. */
  function answerAll(parent: string, { path, models }: Answerers): void {
    for (const [index, model] of models.entries()) {
      const id = randomId()
      void answer(id, parent, path, model)
      if (index === 0) setCurrent(id)
    }
  }

  function setCurrent(current: string | null): void {
    set({ current })
    keeper.change([], 'current')
  }

  function stop(): void {
    for (const own of stops.values()) own.abort()
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
      let parent = after
      for (const message of said) {
        const id = randomId()
        put({ ...message, id, parent, at: nowSeconds() }, { current: id })
        parent = id
      }
      answerAll(parent!, answerers)
    },
    /** Has the question of an answer answered once more, as another version. */
    again: ({ parent }: TreeMessage, answerers: Answerers) => answerAll(parent!, answerers),
    /** Shows the branch that ends with a message. */
    show: setCurrent,
    change(change: Partial<Pick<Conversation, 'title' | 'system' | 'parameters'>>): void {
      set(change)
      keeper.change([], ...(Object.keys(change) as (keyof Conversation)[]))
    },
    /** Tries again to keep what could not be kept. */
    keep: keeper.flush,
    stop,
    /** Stops everything: the session of the person ends. */
    end(): void {
      keeper.end()
      stop()
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
