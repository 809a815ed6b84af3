import { expect, test } from 'vitest'
import { openKeeper } from '../../../server/console/app/pages/chat/conversation/keeper.ts'
import type { Conversation, ConversationStore } from '../../../server/console/app/pages/chat/store/stored.ts'

const conversation = (title: string): Conversation => ({
  title,
  folder: null,
  system: '',
  parameters: {},
  current: 'a',
  messages: [{ id: 'a', parent: null, at: 0, role: 'user', text: 'Hello' }],
})

/** A store whose writes end when they are told to. */
function slowStore() {
  const written: (string | undefined)[] = []
  const ends: (() => void)[] = []
  const until = () => new Promise<void>(resolve => ends.push(resolve))
  const store = {
    async update(_id: string, { title }: Partial<Conversation>) {
      await until()
      written.push(title)
    },
  } as Partial<ConversationStore> as ConversationStore
  return { store, written, ends }
}

function opened() {
  const slow = slowStore()
  let now = conversation('one')
  const keeper = openKeeper({
    store: () => Promise.resolve(slow.store),
    id: 'conv_1',
    read: () => now,
    kept() {},
    failed(failure) {
      throw failure
    },
  })
  const rename = (title: string) => {
    now = conversation(title)
    keeper.change([], 'title')
  }
  return { ...slow, keeper, rename }
}

test('a flush waits for the write that is under way, and writes what changed meanwhile', async () => {
  const { keeper, rename, written, ends } = opened()
  rename('two')
  const first = keeper.flush()
  await expect.poll(() => ends.length).toBe(1)
  rename('three')
  const second = keeper.flush()
  ends.shift()!()
  await first
  await expect.poll(() => ends.length).toBe(1)
  ends.shift()!()
  await second
  expect(written).toEqual(['two', 'three'])
})

test('what is dropped is written no more', async () => {
  const { keeper, rename, written, ends } = opened()
  rename('two')
  keeper.drop()
  rename('three')
  await keeper.flush()
  expect([written, ends]).toEqual([[], []])
})
