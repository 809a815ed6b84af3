import { openAccounts, type TokenOptions } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { newId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { type NewOrganization, scopes } from '../../core/store/store.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

/** A server with a text model and one for images and videos. */
export const startSpecified = (more: Parameters<typeof startApp>[0] = {}): Promise<TestApp> =>
  startApp({
    models: [
      fakeModel('fake'),
      {
        id: 'demo',
        engine: 'demo',
        tasks: ['slug/text-to-image', 'slug/text-to-video', 'slug/image-to-video'],
        memory: '64MiB',
        devices: 'cpu',
        concurrency: 2,
      },
    ],
    ...more,
  })

/** An organization with these properties, and a token of it. */
export async function organizationWith(
  app: TestApp,
  organization: Partial<NewOrganization>,
  token: Partial<TokenOptions> = {},
): Promise<{ organizationId: string; secret: string }> {
  const log = openLog('error')
  const store = await openAdminStore(app.dataDir, log)
  try {
    const accounts = openAccounts({ store, keys: openStoredKeys(app.dataDir), log })
    const { id } = await accounts.createOrganization({ name: newId('org'), ...organization })
    const { secret } = await accounts.issue({ name: 'first', scopes: [...scopes], ...token, organizationId: id })
    return { organizationId: id, secret }
  } finally {
    await store.close()
  }
}

export interface Answer {
  status: number
  headers: Headers
  // oxlint-disable-next-line no-explicit-any
  body: any
}

/** Sends a request with a JSON body, and reads the JSON answer. */
export async function ask(
  app: TestApp,
  method: string,
  path: string,
  body?: unknown,
  token?: string | null,
): Promise<Answer> {
  const response = await app.fetch(path, { method, body, ...(token === undefined ? {} : { token }) })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}

export const chat = { model: 'fake', messages: [{ role: 'user', content: 'Hi' }] }
export const job = { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } }
export const dag = {
  nodes: { a: { model_id: 'fake', task: 'std/chat-completion', inputs: { messages: chat.messages } } },
  edges: [],
}
/** A video that takes as little time as a video can. */
export const shortVideo = { prompt: 'a cat', num_frames: 1, fps: 1, num_inference_steps: 1 }
