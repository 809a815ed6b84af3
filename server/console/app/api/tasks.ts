import { queryOptions } from '@tanstack/react-query'
import { api, dataOf } from './client.ts'

/**
 * The tasks and the models that do them, read once for all pages. The console invalidates them when it adds or removes a
 * model; one that infer.yaml gains is seen after a minute.
 */
export const tasksQuery = queryOptions({
  queryKey: ['tasks'],
  queryFn: () => dataOf(api.GET('/api/tasks')),
  staleTime: 60_000,
})
