import { expect, test } from 'vitest'
import { requestedCall } from '../../../core/jobs/slot-requests.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import type { GrantedEngine } from '../../../core/models/slot-grants.ts'
import { type LentSlotsOptions, openLentSlots } from '../../../server/fronts/lent-slots.ts'
import type { ToFront } from '../../../server/fronts/messages.ts'

test.for([
  ['goes on with other calls', true],
  ['gives its place to another server', false],
] as const)('a slot for a call of a front that %s is kept by it: %j', async ([, keeps]) => {
  const free = Promise.withResolvers<void>()
  const lease = { engineId: 'engine', loadedMs: 0, release() {} } as Partial<Lease> as Lease
  const grants = { mayLend: () => true, lend: () => ({ engine: { engineId: 'engine' } as GrantedEngine, keeps: true }) }
  const options = {
    slotRequests: { take: async () => free.promise.then(() => ({ lease, entry: undefined })), ran() {} },
    grants,
    find: () => ({}),
    requireMachine() {},
    timings: { waited() {} },
  } as unknown as LentSlotsOptions
  let leaving = false
  const lent: boolean[] = []
  const sent: ToFront[] = []
  const slots = openLentSlots(options, {
    send: message => void sent.push(message),
    lent: (_, kept) => void lent.push(kept),
    refused() {},
    isLeaving: () => leaving,
  })
  const facts = { organizationId: 'org', tokenId: 'tok', task: 'std/chat-completion', modelId: 'fake' } as const
  const times = { requestedModel: null, createdAt: 0, traceparent: undefined, prompt: undefined }
  slots.want(requestedCall({ id: 'call', ...facts, ...times }), undefined)
  leaving = !keeps
  free.resolve()
  await expect.poll(() => sent).toMatchObject([{ kind: 'slots', slots: [{ id: 'call', keeps }] }])
  expect(lent).toEqual([keeps])
})
