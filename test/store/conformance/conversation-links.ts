import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { maxConversationLinks, theServer } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { organizationId } from './records.ts'

/** Links with which anybody reads a conversation. */
export function conversationLinkRules({ store, fresh }: Subject): void {
  const { conversations, conversationLinks: links } = store
  const whose = (owner = newId('user')) => ({ organizationId, owner })
  const link = (more: Partial<{ createdAt: number; expiresAt: number }> = {}) => ({
    id: newId('link'),
    createdAt: 1_000,
    expiresAt: 9_000,
    ...more,
  })
  const message = (id: string, parent: string | null = null) => ({ id, parent, text: id, details: '{"role":"user"}' })
  async function conversation(messages = [message('a'), message('b', 'a')], of = conversations) {
    const fields = {
      title: 'T',
      folder: null,
      system: 's',
      parameters: '{}',
      currentMessage: messages.at(-1)?.id ?? null,
    }
    return of.create({ ...whose(), ...fields, id: newId('conv'), messages, createdAt: 5 })
  }

  test('a link shows the branch of its time to anybody, and is seen and removed by the owner only', async () => {
    const made = await conversation()
    const first = link()
    expect(await links.create(made, made.id, first)).toEqual(first)
    await conversations.update(made, made.id, { messages: [message('c', 'b')], currentMessage: 'c', at: 6 })
    const second = link({ createdAt: 2_000 })
    await links.create(made, made.id, second)
    expect(await links.list(made, made.id, 3_000)).toEqual([second, first])
    expect(await links.find(first.id)).toMatchObject({
      organizationId,
      callStorage: 'metadata',
      title: 'T',
      lastMessage: 'b',
      messages: [message('a'), message('b', 'a'), message('c', 'b')],
    })
    expect(await links.find(second.id)).toMatchObject({ lastMessage: 'c' })
    for (const other of [whose(), { ...made, organizationId: 'org_absent' }]) {
      expect(await links.list(other, made.id, 3_000)).toEqual([])
      expect(await links.remove(other, made.id, first.id)).toBe(false)
      expect(await links.create(other, made.id, link())).toBeUndefined()
    }
    // One file is found without the other messages, and not in another branch.
    const naming = { ...message('d', 'a'), details: '{"role":"user","files":[{"id":"file-1"}]}' }
    await conversations.update(made, made.id, { messages: [naming, message('e', 'd')], currentMessage: 'e', at: 7 })
    const third = link()
    await links.create(made, made.id, third)
    expect(await links.findWith(third.id, 'file-1')).toMatchObject({ organizationId, messages: [naming] })
    expect(await links.findWith(second.id, 'file-1')).toMatchObject({ messages: [] })
    expect(await links.findWith(newId('link'), 'file-1')).toBeUndefined()
    await links.remove(made, made.id, third.id)
    const another = await conversation()
    expect(await links.remove(another, another.id, first.id)).toBe(false)
    expect(await links.remove(made, made.id, first.id)).toBe(true)
    expect(await links.find(first.id)).toBeUndefined()
    expect(await links.list(made, made.id, 9_000)).toEqual([])
  })

  test('a conversation without a message has no link, and another one not too many', async () => {
    const empty = await conversation([])
    await expect(links.create(empty, empty.id, link())).rejects.toMatchObject({ code: 'conflict' })
    const made = await conversation()
    for (let at = 0; at < maxConversationLinks; at++) await links.create(made, made.id, link({ expiresAt: 2_000 + at }))
    await expect(links.create(made, made.id, link())).rejects.toMatchObject({ code: 'storage_full' })
    // One of them has expired.
    await links.create(made, made.id, link({ createdAt: 2_000 }))
  })

  test('the link of a deleted conversation is known until it expires', async () => {
    await using own = await fresh()
    const { store: all } = own
    const made = await conversation(undefined, all.conversations)
    const kept = link()
    await all.conversationLinks.create(made, made.id, kept)
    await all.conversations.remove(made, made.id)
    expect(await all.conversationLinks.find(kept.id)).toBeNull()
    await all.jobs.sweep(8_999, 10)
    expect(await all.conversationLinks.find(kept.id)).toBeNull()
    await all.jobs.sweep(9_000, 10)
    expect(await all.conversationLinks.find(kept.id)).toBeUndefined()
    // A deleted organization leaves nothing that a link could show.
    const id = newId('org')
    await all.organizations.create({ id, name: id, plan: 'free', createdAt: 1 })
    const fields = { title: '', folder: null, system: '', parameters: '{}', currentMessage: 'a' }
    const other = { organizationId: id, owner: newId('user') }
    const theirs = { ...other, ...fields, id: newId('conv'), messages: [message('a')], createdAt: 5 }
    await all.conversations.create(theirs)
    const shown = link()
    await all.conversationLinks.create(other, theirs.id, shown)
    // While the organization is suspended a link of it is one that was revoked.
    await all.organizations.setStatus(id, 'suspended', theServer, 2)
    expect(await all.conversationLinks.find(shown.id)).toBeUndefined()
    await all.organizations.setStatus(id, 'active', theServer, 2)
    expect(await all.conversationLinks.find(shown.id)).toMatchObject({ organizationId: id })
    await all.organizations.remove(id, true, theServer, 2)
    let more = true
    while (more) ({ more } = await all.organizations.erase(id, 3, 2))
    expect(await all.conversationLinks.find(shown.id)).toBeNull()
  })
}
