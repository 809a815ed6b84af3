import { createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { openConversationLinks } from '../../../core/conversations/conversation-links.ts'
import type { Store } from '../../../core/store/store.ts'

const key = createSecretKey(Buffer.alloc(32, 1))
const found = { organizationId: 'org_1', callStorage: 'content', title: 'T', lastMessage: 'a', messages: [] }

test('a link is valid until its second, also after a restart, and only with the key of the server', async () => {
  let now = 1_000_000
  const store = { conversationLinks: { find: async () => found } } as unknown as Pick<Store, 'conversationLinks'>
  const open = (of = key) => openConversationLinks({ store, key: of, clock: { now: () => now } })
  const token = open().tokenOf({ id: `link_${'0'.repeat(26)}`, expiresAt: 5_000_000 })
  now = 4_999_999
  expect(await open().open(token)).toMatchObject({ title: 'T', expiresAt: 5_000_000 })
  expect(await open(createSecretKey(Buffer.alloc(32, 2))).open(token)).toBeUndefined()
  now = 5_000_000
  await expect(open().open(token)).rejects.toMatchObject({
    code: 'output_expired',
    message: /time of this link is over/,
  })
})
