import { afterAll, describe, expect } from 'vitest'
import type { Store } from '../../../core/store/store.ts'
import { accountRules } from './accounts.ts'
import { batchRules } from './batches.ts'
import { concurrencyRules } from './concurrency.ts'
import { conversationLinkRules } from './conversation-links.ts'
import { conversationRules } from './conversations.ts'
import { deferredRules } from './deferred.ts'
import { eventRules } from './events.ts'
import { executionRules } from './executions.ts'
import { fileRules } from './files.ts'
import { forgettingRules } from './forgetting.ts'
import { itemRules } from './items.ts'
import { jobRules } from './jobs.ts'
import { largeResultRules } from './large-results.ts'
import { lifetimeRules } from './lifetime.ts'
import { limitRules } from './limits.ts'
import { nestedRules } from './nested.ts'
import { organizationRules } from './organizations.ts'
import { queueRules } from './queue.ts'
import { createOrganization } from './records.ts'
import { responseRules } from './responses.ts'
import { sessionRules } from './sessions.ts'
import { setAsideRules } from './set-aside.ts'
import { spendRules } from './spend.ts'
import { textRules } from './text.ts'
import { usageRules } from './usage.ts'
import { webhookRules } from './webhooks.ts'
import { workflowRules } from './workflows.ts'

/** The data folder of a store: empty at first, and removed when it is disposed of. */
export interface StorePlace extends AsyncDisposable {
  /** Opens the store. One at a time: the previous one was closed. */
  open(): Promise<Store>
  /** Inconsistencies of the data and errors of the store, as sentences. */
  findings(): Promise<string[]>
}

/** The arguments of the rules of a subject. */
export interface Subject {
  /** A store with the organization `organizationId`. Tests share it: data of one test is seen by the next. */
  store: Store
  /** A separate store for one test. */
  fresh: () => Promise<AsyncDisposable & { store: Store; place: StorePlace }>
}

const subjects: Record<string, (subject: Subject) => void | Promise<void>> = {
  accounts: accountRules,
  organizations: organizationRules,
  jobs: jobRules,
  queue: queueRules,
  deferred: deferredRules,
  batches: batchRules,
  events: eventRules,
  files: fileRules,
  forgetting: forgettingRules,
  workflows: workflowRules,
  executions: executionRules,
  nested: nestedRules,
  'set aside': setAsideRules,
  concurrency: concurrencyRules,
  items: itemRules,
  webhooks: webhookRules,
  'large results': largeResultRules,
  limits: limitRules,
  responses: responseRules,
  conversations: conversationRules,
  'conversation links': conversationLinkRules,
  sessions: sessionRules,
  spend: spendRules,
  text: textRules,
  usage: usageRules,
  lifetime: lifetimeRules,
}

/** The rules that every Store keeps, as tests of the store that is opened in a folder. */
export function conformance(name: string, newPlace: () => Promise<StorePlace>): void {
  async function fresh() {
    const place = await newPlace()
    const store = await place.open()
    await createOrganization(store)
    return {
      store,
      place,
      async [Symbol.asyncDispose]() {
        await store.close()
        const findings = await place.findings()
        await place[Symbol.asyncDispose]()
        expect(findings).toEqual([])
      },
    }
  }

  for (const [subject, rules] of Object.entries(subjects))
    describe(`${name}: ${subject}`, async () => {
      const opened = await fresh()
      afterAll(() => opened[Symbol.asyncDispose]())
      await rules({ store: opened.store, fresh })
    })
}
