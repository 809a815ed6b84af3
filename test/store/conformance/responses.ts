import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { type ResponseRecord, theServer } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { organizationId } from './records.ts'

/** Responses that are kept. */
export function responseRules({ store, fresh }: Subject): void {
  const { responses } = store
  const response = (more: Partial<ResponseRecord> = {}): ResponseRecord => ({
    organizationId,
    id: newId('resp'),
    tokenId: 'tok_test',
    previousId: null,
    jobId: null,
    request: '{"model":"m"}',
    input: '[]',
    answer: '{"output":[]}',
    createdAt: 5,
    expiresAt: 100,
    ...more,
  })

  test('a response is read as it was added, by its own organization only', async () => {
    const added = response({ previousId: newId('resp'), input: '[{"content":"ö\\u0000"}]' })
    await responses.add(added)
    expect(await responses.find(organizationId, added.id, 5)).toEqual(added)
    expect(await responses.find('org_absent', added.id, 5)).toBeUndefined()
    expect(await responses.find(organizationId, newId('resp'), 5)).toBeUndefined()
  })

  test('one in the background has a job in place of its answer, never both and never none', async () => {
    const background = response({ jobId: newId('job'), answer: null })
    await responses.add(background)
    expect(await responses.find(organizationId, background.id, 5)).toEqual(background)
    await expect(responses.add(response({ jobId: newId('job') }))).rejects.toThrow()
    await expect(responses.add(response({ answer: null }))).rejects.toThrow()
  })

  test('an expired response is absent at once, and the sweep removes it; one without an end stays', async () => {
    await using own = await fresh()
    const expiring = response()
    const lasting = response({ expiresAt: null })
    await own.store.responses.add(expiring)
    await own.store.responses.add(lasting)
    const find = (id: string, now: number) => own.store.responses.find(organizationId, id, now)
    expect(await find(expiring.id, 99)).toEqual(expiring)
    expect(await find(expiring.id, 100)).toBeUndefined()
    expect(await own.store.jobs.sweep(99, 10)).toBe(0)
    expect(await own.store.jobs.sweep(100, 10)).toBe(1)
    expect(await find(expiring.id, 5)).toBeUndefined()
    expect(await find(lasting.id, 1e15)).toEqual(lasting)
  })

  test('a response is removed once, by its own organization only', async () => {
    const { id } = response()
    await responses.add(response({ id }))
    expect(await responses.remove('org_absent', id)).toBe(false)
    expect(await responses.remove(organizationId, id)).toBe(true)
    expect(await responses.remove(organizationId, id)).toBe(false)
    expect(await responses.find(organizationId, id, 5)).toBeUndefined()
  })

  test('the responses of a deleted organization are erased', async () => {
    const id = newId('org')
    await store.organizations.create({ id, name: id, plan: 'free', createdAt: 1 })
    const made = [response({ organizationId: id }), response({ organizationId: id }), response({ organizationId: id })]
    for (const one of made) await responses.add(one)
    await store.organizations.remove(id, true, theServer, 2)
    let more = true
    while (more) ({ more } = await store.organizations.erase(id, 2, 2))
    for (const one of made) expect(await responses.find(id, one.id, 5)).toBeUndefined()
    expect(await store.organizations.unerased()).not.toContain(id)
  })
}
