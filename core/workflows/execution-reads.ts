import type { Store } from '../store/store.ts'

/** What is read of executions and of their events, as the store has it. */
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
    inputs: (organizationId, id, longest) => executions.inputs(organizationId, id, longest),
    events: {
      ofExecution: (organizationId, want) => events.ofExecution(organizationId, want),
      ofOrganization: (organizationId, want) => events.ofOrganization(organizationId, want),
    },
  }
}
