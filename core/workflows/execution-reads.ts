import type { Store } from '../store/store.ts'

/** Reads of executions and their events, straight from the store. */
export function openExecutionReads({
  executions,
  events,
}: Pick<Store, 'executions' | 'events'>): Pick<
  Store['executions'],
  'find' | 'summary' | 'list' | 'nodes' | 'results' | 'inputs'
> & { events: Pick<Store['events'], 'ofExecution' | 'ofOrganization'> } {
  return {
    find: (organizationId, id) => executions.find(organizationId, id),
    summary: (organizationId, id) => executions.summary(organizationId, id),
    list: (organizationId, filter) => executions.list(organizationId, filter),
    nodes: (organizationId, id) => executions.nodes(organizationId, id),
    results: (organizationId, id, nodeIds) => executions.results(organizationId, id, nodeIds),
    inputs: (organizationId, id, maxLength) => executions.inputs(organizationId, id, maxLength),
    events: {
      ofExecution: (organizationId, query) => events.ofExecution(organizationId, query),
      ofOrganization: (organizationId, query) => events.ofOrganization(organizationId, query),
    },
  }
}
