import type { Store } from '../store/store.ts'

/** What is read of jobs and of their events, as the store has it. */
export function openJobReads({ jobs, events }: Pick<Store, 'jobs' | 'events'>): Pick<
  Store['jobs'],
  'find' | 'gone' | 'keyed' | 'list' | 'counts'
> & {
  events: Pick<Store['events'], 'after' | 'last'>
} {
  return {
    find: (organizationId, id) => jobs.find(organizationId, id),
    gone: (organizationId, id) => jobs.gone(organizationId, id),
    keyed: (organizationId, key, now) => jobs.keyed(organizationId, key, now),
    list: (organizationId, filter) => jobs.list(organizationId, filter),
    counts: () => jobs.counts(),
    events: { after: (organizationId, want) => events.after(organizationId, want), last: () => events.last() },
  }
}
