import type { Conversation, ConversationStore } from '../store/stored.ts'

/** Milliseconds between two writes of a conversation, such as one whose answer grows. */
const pauseMs = 1_000

interface KeeperOptions {
  /** Where a new conversation is kept is known when it is written first. */
  store: () => Promise<ConversationStore>
  /** Undefined for a conversation that is not kept yet. */
  id: string | undefined
  /** The conversation as it is to be kept. */
  read: () => Conversation
  /** Called after each write, with the id and the title where it was the first. */
  kept: (created?: { id: string; title: string }) => void
  failed: (failure: Error) => void
}

/** Writes what changes in a conversation: one write at a time, at most once a second. What could not be written is written again. */
export function openKeeper({ store, id: begun, read, kept, failed }: KeeperOptions) {
  let id = begun
  let messages = new Set<string>()
  let fields = new Set<keyof Conversation>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let writtenAt = Number.NEGATIVE_INFINITY
  let writing: Promise<void> | undefined
  let hasEnded = false
  let isDropped = false

  function schedule(): void {
    if (!writing && !hasEnded)
      timer ??= setTimeout(() => void flush(), Math.max(0, writtenAt + pauseMs - performance.now()))
  }

  async function write(now: Conversation, ids: ReadonlySet<string>, names: ReadonlySet<keyof Conversation>) {
    const opened = await store()
    if (id === undefined) {
      const created = await opened.create(now)
      id = created.id
      return created
    }
    const changed = Object.fromEntries([...names].map(name => [name, now[name]])) as Partial<Conversation>
    await opened.update(id, { ...changed, messages: now.messages.filter(message => ids.has(message.id)) })
    return undefined
  }

  async function writeChanges(): Promise<void> {
    const now = read()
    const [ids, names] = [messages, fields]
    messages = new Set()
    fields = new Set()
    try {
      kept(await write(now, ids, names))
    } catch (thrown) {
      messages = new Set([...ids, ...messages])
      fields = new Set([...names, ...fields])
      if (!hasEnded) failed(thrown as Error)
      return
    } finally {
      writing = undefined
      writtenAt = performance.now()
    }
    if (hasChanges()) schedule()
  }

  const hasChanges = (): boolean => messages.size > 0 || fields.size > 0

  /** Writes what has changed until now. Resolves when no write is under way. */
  async function flush(): Promise<void> {
    if (writing) {
      await writing
      return flush()
    }
    clearTimeout(timer)
    timer = undefined
    // Nothing is kept before the first message.
    if (isDropped || !hasChanges() || (id === undefined && read().messages.length === 0)) return
    writing = writeChanges()
    await writing
  }

  return {
    /** Remembers that messages or fields have changed, and writes them soon. */
    change(ids: readonly string[], ...names: (keyof Conversation)[]): void {
      for (const one of ids) messages.add(one)
      for (const name of names) fields.add(name)
      schedule()
    },
    flush,
    /** Writes no more after what has changed until now. */
    end(): void {
      void flush()
      hasEnded = true
    },
    /** Writes nothing any more: the conversation is deleted. */
    drop(): void {
      clearTimeout(timer)
      hasEnded = true
      isDropped = true
    },
  }
}
