import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import {
  type ConversationMessage,
  conversationLimits,
  type NewConversation,
  type NewToken,
  theServer,
} from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { organizationId } from './records.ts'

const message = (id: string, parent: string | null = null, text = `text of ${id}`): ConversationMessage => ({
  id,
  parent,
  text,
  details: '{"role":"user"}',
})

/** Conversations that are kept for people. */
export function conversationRules({ store, fresh }: Subject): void {
  const { conversations } = store
  const whose = (owner = newId('user')) => ({ organizationId, owner })
  const conversation = (more: Partial<NewConversation> = {}): NewConversation => ({
    ...whose(),
    id: newId('conv'),
    title: 'A title',
    folder: null,
    system: '',
    parameters: '{}',
    currentMessage: null,
    messages: [],
    createdAt: 5,
    ...more,
  })

  test('a conversation is read as it was created, by its owner in its organization only', async () => {
    const made = conversation({ messages: [message('a'), message('b', 'a')], currentMessage: 'b', folder: 'f' })
    const { messages, ...rest } = made
    const record = { ...rest, revision: 1, messages: 2, updatedAt: 5 }
    expect(await conversations.create(made)).toEqual(record)
    expect(await conversations.find(made, made.id)).toEqual(record)
    expect(await conversations.messages(made, made.id)).toEqual(messages)
    expect(await conversations.list(made, { limit: 9 })).toEqual([record])
    expect(await conversations.folders(made)).toEqual(['f'])
    for (const other of [whose(), { ...made, organizationId: 'org_absent' }]) {
      expect(await conversations.find(other, made.id)).toBeUndefined()
      expect(await conversations.messages(other, made.id)).toEqual([])
      expect(await conversations.texts(other, made.id, 0)).toEqual({ texts: [], next: null })
      expect(await conversations.list(other, { limit: 9 })).toEqual([])
      expect(await conversations.folders(other)).toEqual([])
      expect(await conversations.update(other, made.id, { title: 'x', messages: [], at: 6 })).toBeUndefined()
      expect(await conversations.remove(other, made.id)).toBe(false)
    }
    expect(await conversations.remove(made, made.id)).toBe(true)
    expect(await conversations.find(made, made.id)).toBeUndefined()
  })

  test('a change adds branches and replaces texts, and one of an older revision is refused', async () => {
    const made = conversation({ messages: [message('a'), message('b', 'a')] })
    await conversations.create(made)
    const change = { messages: [message('b', 'a', 'longer'), message('c', 'a')], at: 7, revision: 1 }
    expect(await conversations.update(made, made.id, { ...change, currentMessage: 'c' })).toMatchObject({
      revision: 2,
      messages: 3,
      currentMessage: 'c',
      title: 'A title',
      updatedAt: 7,
    })
    expect((await conversations.messages(made, made.id)).map(({ id, text }) => [id, text])).toEqual([
      ['a', 'text of a'],
      ['b', 'longer'],
      ['c', 'text of c'],
    ])
    await expect(conversations.update(made, made.id, change)).rejects.toMatchObject({
      code: 'version_conflict',
      facts: { revision: 2 },
    })
    expect(await conversations.update(made, made.id, { messages: [], folder: 'f', at: 8 })).toMatchObject({
      revision: 3,
      folder: 'f',
      updatedAt: 7,
    })
  })

  test.each([
    ['a parent that does not exist', { messages: [message('c', 'x')] }, 'invalid_value'],
    ['another parent of a message', { messages: [message('b')] }, 'invalid_value'],
    ['a current message that does not exist', { messages: [], currentMessage: 'x' }, 'invalid_value'],
    [
      'too many messages',
      { messages: Array.from({ length: conversationLimits.messages }, (_, at) => message(`m${at}`)) },
      'payload_too_large',
    ],
    [
      'too long messages',
      { messages: [message('m', 'a', '.'.repeat(conversationLimits.length))] },
      'payload_too_large',
    ],
    ['a too long system prompt', { messages: [], system: '.'.repeat(conversationLimits.length) }, 'payload_too_large'],
  ])('%s is refused, and nothing changes', async (_, change, code) => {
    const made = conversation({ messages: [message('a'), message('b', 'a')] })
    const before = await conversations.create(made)
    await expect(conversations.update(made, made.id, { ...change, at: 6 })).rejects.toMatchObject({ code })
    expect(await conversations.find(made, made.id)).toEqual(before)
    expect(await conversations.messages(made, made.id)).toEqual(made.messages)
  })

  test('pages go on behind their last conversation, those changed last first, of a folder only', async () => {
    const owner = whose()
    const ids = await Promise.all(
      [1, 2, 2, 4].map(async (createdAt, at) => {
        const folder = at === 1 ? null : 'f'
        return (await conversations.create(conversation({ ...owner, createdAt, folder }))).id
      }),
    )
    const list = async (page: { limit: number; after?: string; folder?: string }) =>
      (await conversations.list(owner, page)).map(({ id }) => ids.indexOf(id))
    expect(await list({ limit: 3 })).toEqual([3, 2, 1])
    expect(await list({ limit: 3, after: ids[1]! })).toEqual([0])
    expect(await list({ limit: 3, folder: 'f' })).toEqual([3, 2, 0])
    const inNone = await conversations.list(owner, { limit: 3, folder: null })
    expect(inNone.map(({ id }) => ids.indexOf(id))).toEqual([1])
    await conversations.update(owner, ids[0]!, { title: 'newest', messages: [], at: 9 })
    expect(await list({ limit: 1 })).toEqual([0])
    expect(await list({ limit: 1, after: newId('conv') })).toEqual([])
  })

  test('a folder is moved with all that is in it, of its owner only, and the order stays', async () => {
    const owner = whose()
    for (const [createdAt, folder] of [
      [1, 'f'],
      [2, 'g'],
      [3, 'f'],
    ] as const)
      await conversations.create(conversation({ ...owner, createdAt, folder }))
    expect(await conversations.moveFolder(whose(), 'f', 'h')).toBe(0)
    expect(await conversations.moveFolder(owner, 'f', 'g')).toBe(2)
    const listed = await conversations.list(owner, { limit: 9, folder: 'g' })
    expect(listed.map(({ createdAt, updatedAt, revision }) => [createdAt, updatedAt, revision])).toEqual([
      [3, 3, 2],
      [2, 2, 1],
      [1, 1, 2],
    ])
    expect(await conversations.moveFolder(owner, 'g', null)).toBe(3)
    expect(await conversations.folders(owner)).toEqual([])
  })

  test('texts are read in parts', async () => {
    const texts = ['a', 'b', 'c'].map(letter => letter.repeat(100_000))
    const made = conversation({ messages: texts.map((text, at) => message(`m${at}`, null, text)) })
    await conversations.create(made)
    const first = await conversations.texts(made, made.id, 0)
    expect(first.texts).toEqual(texts.slice(0, 2))
    expect(await conversations.texts(made, made.id, first.next!)).toEqual({ texts: texts.slice(2), next: null })
  })

  test('the conversations of a removed user, a revoked token and a deleted organization are erased', async () => {
    await using own = await fresh()
    const { store: all } = own
    const act = { by: theServer, at: 2, force: true }
    const user = { organizationId, id: newId('user'), name: 'U', email: 'u@example.org', role: 'member' as const }
    await all.users.create({ ...user, createdAt: 1 }, theServer)
    const token = (more: Partial<NewToken> = {}): NewToken => ({
      id: newId('tok'),
      publicId: newId('tok').slice(-12),
      organizationId,
      name: 't',
      digest: Buffer.alloc(32),
      hint: 'sk',
      scopes: ['user:write'],
      models: null,
      userId: null,
      metadata: null,
      createdAt: 1,
      createdBy: null,
      expiresAt: null,
      ...more,
    })
    const [first, lasting] = [token(), token()]
    for (const one of [first, lasting]) await all.tokens.create(one)
    const next = token({ originId: first.id })
    await all.tokens.rotate(organizationId, first.id, next, 2)
    const made = [user.id, first.id, lasting.id].map(owner => conversation({ owner, messages: [message('a')] }))
    for (const one of made) await all.conversations.create(one)
    const left = async () =>
      (await Promise.all(made.map(one => all.conversations.find(one, one.id)))).map(one => one !== undefined)
    await all.users.remove(organizationId, user.id, act)
    await all.tokens.revoke(organizationId, first.id, 2)
    expect(await all.jobs.sweep(1, 10)).toBe(1)
    expect(await left()).toEqual([false, true, true])
    await all.tokens.revoke(organizationId, next.id, 2)
    expect(await all.jobs.sweep(1, 10)).toBe(1)
    expect(await left()).toEqual([false, false, true])

    const id = newId('org')
    await all.organizations.create({ id, name: id, plan: 'free', createdAt: 1 })
    const others = [1, 2, 3].map(() => conversation({ organizationId: id, messages: [message('a')] }))
    for (const one of others) await all.conversations.create(one)
    await all.organizations.remove(id, true, theServer, 2)
    let more = true
    while (more) ({ more } = await all.organizations.erase(id, 3, 2))
    for (const one of others) expect(await all.conversations.find(one, one.id)).toBeUndefined()
    expect(await left()).toEqual([false, false, true])
  })
}
