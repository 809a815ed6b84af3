import { queryOptions, type UseQueryResult, useQueries, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, at, dataOf, type Schema } from '../../api/client.ts'
import { everyPage } from '../../api/every-page.ts'
import { type NestedNode, type NestedWorkflows, namedWorkflows } from './document/nested.ts'
import { type Workflow, workflowOf } from './document/workflow-document.ts'

/** Milliseconds for which a workflow that was read is good enough: another person may save it meanwhile. */
const freshMs = 30_000

/** A stored workflow that a node runs. */
interface StoredWorkflow extends Pick<Schema<'Workflow'>, 'id' | 'name' | 'parameters'> {
  nodes: readonly NestedNode[]
}

/** The workflows that the nodes of a graph run, as they are stored; those that are not known are left out. */
export function useNested({ nodes }: Pick<Workflow, 'nodes'>): NestedWorkflows {
  const named = useMemo(() => namedWorkflows(nodes), [nodes])
  const found = useQueries({
    queries: named.map(({ name, version }) => storedQuery(name, version)),
    combine: nodesOfAll,
  })
  return useMemo(
    () => new Map(named.flatMap(({ by }, at) => by.flatMap(id => (found[at] ? [[id, found[at]] as const] : [])))),
    [named, found],
  )
}

/** The workflow that one node runs; undefined until it is read, and where it is not known. */
export function useStored(node: Pick<Workflow['nodes'][number], 'id' | 'task' | 'inputs'>): StoredWorkflow | undefined {
  const [named] = namedWorkflows([node])
  const { data } = useQuery({ ...storedQuery(named?.name ?? '', named?.version), enabled: named !== undefined })
  return data ?? undefined
}

const storedQuery = (name: string, version: number | undefined) =>
  queryOptions({
    queryKey: ['workflows', 'nested', name, version],
    staleTime: freshMs,
    queryFn: () => readStored(name, version),
  })

const nodesOfAll = (results: UseQueryResult<StoredWorkflow | null>[]) => results.map(({ data }) => data?.nodes)

/** The workflow with this name or id; null if there is none, or several with the name. */
async function readStored(name: string, version: number | undefined): Promise<StoredWorkflow | null> {
  const id = name.startsWith('wf_') ? name : await idOf(name)
  if (id === undefined) return null
  const { workflow } = await dataOf(api.GET('/api/workflows/{id}', at({ id }, { version })))
  const { name: stored, parameters, dag } = workflow
  return { id, name: stored, parameters, nodes: workflowOf({ dag }).nodes }
}

async function idOf(name: string): Promise<string | undefined> {
  const q = name.slice(0, 256)
  // Others may have the name in theirs.
  const pages = await everyPage(after => api.GET('/api/workflows', { params: { query: { q, limit: 100, after } } }))
  const same = pages.flatMap(({ workflows }) => workflows).filter(workflow => workflow.name === name)
  return same.length === 1 ? same[0]!.id : undefined
}
