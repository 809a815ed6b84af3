import { followAccountChanges } from '../../core/accounts/account-changes.ts'
import type { Admission } from '../../core/admission/admission.ts'
import type { Jobs } from '../../core/jobs/jobs.ts'
import type { Fleet } from '../../core/models/fleet.ts'
import type { Store } from '../../core/store/store.ts'
import { type FrontWorkOptions, type FrontWorkOwner, openFrontWork } from '../../server/fronts/front-work.ts'
import type { Server } from '../../server/server.ts'

type Given = Pick<
  FrontWorkOptions,
  'config' | 'accounts' | 'credits' | 'tokenLimiter' | 'metrics' | 'timings' | 'throughput' | 'log'
> & { registry: FrontWorkOptions['registry'] & Pick<FrontWorkOptions, 'find'> } & {
  store: Pick<Store, 'audit'>
  admission: Pick<Admission, 'requireMachine'>
  jobs: Pick<Jobs, 'slotRequests' | 'calls' | 'recorder'>
  fleet: Pick<Fleet, 'grants'>
}

/** Lets the gateway processes of a server answer what they can themselves; undefined if it has none. */
export const serveFronts = (
  server: Pick<Server, 'serveFronts'>,
  { store, admission, jobs, fleet, ...more }: Given,
): FrontWorkOwner | undefined =>
  server.serveFronts(routes =>
    openFrontWork({
      ...more,
      ...routes,
      followAccounts: changed => followAccountChanges({ audit: store.audit, changed, log: more.log }),
      find: more.registry.find,
      requireMachine: admission.requireMachine,
      slotRequests: jobs.slotRequests,
      calls: jobs.calls,
      recorder: jobs.recorder,
      grants: fleet.grants,
    }),
  )
