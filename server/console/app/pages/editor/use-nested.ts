import { type UseQueryResult, useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, at, dataOf } from '../../api/client.ts'
import { type NestedNode, type NestedWorkflows, namedWorkflows } from './document/nested.ts'
import { type Workflow, workflowOf } from './document/workflow-document.ts'

/** Milliseconds for which a workflow that was read is good enough: another person may save it meanwhile. */
const freshMs = 30_000

/** The workflows that the nodes of a graph run, as they are stored; those that are not known are left out. */
export function useNested({ nodes }: Pick<Workflow, 'nodes'>): NestedWorkflows {
  const named = useMemo(() => namedWorkflows(nodes), [nodes])
  const found = useQueries({
    queries: named.map(({ name, version }) => ({
      queryKey: ['workflows', 'nested', name, version],
      staleTime: freshMs,
      queryFn: () => readNodes(name, version),
    })),
    combine: dataOfAll,
  })
  return useMemo(
    () => new Map(named.flatMap(({ by }, at) => by.flatMap(id => (found[at] ? [[id, found[at]] as const] : [])))),
    [named, found],
  )
}

const dataOfAll = (results: UseQueryResult<readonly NestedNode[] | null>[]) => results.map(({ data }) => data)

/** The nodes of the workflow with this name or id; null if there is none, or several with the name. */
async function readNodes(name: string, version: number | undefined): Promise<readonly NestedNode[] | null> {
  const id = name.startsWith('wf_') ? name : await idOf(name)
  if (id === undefined) return null
  const { workflow } = await dataOf(api.GET('/api/workflows/{id}', at({ id }, { version })))
  return workflowOf({ dag: workflow.dag }).nodes
}

async function idOf(name: string): Promise<string | undefined> {
  const query = { q: name.slice(0, 256), limit: 100 }
  const { workflows } = await dataOf(api.GET('/api/workflows', { params: { query } }))
  const same = workflows.filter(workflow => workflow.name === name)
  return same.length === 1 ? same[0]!.id : undefined
}
