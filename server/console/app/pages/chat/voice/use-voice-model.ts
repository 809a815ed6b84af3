import { useQuery } from '@tanstack/react-query'
import { taskTable } from '../../../../../../core/schemas/task-table.ts'
import { tasksQuery, useModels, useSession } from '../../../api/client.ts'

/** The states in which a model can answer, the best first. */
const usable = ['warm', 'loading', 'cold']

/** The model that transcribes or speaks: one that is loaded, if there is one. Undefined: none can be used. */
export function useVoiceModel(operation: 'transcribe' | 'synthesize'): string | undefined {
  const { can } = useSession()
  const { data: tasks } = useQuery(tasksQuery)
  const { data } = useModels({ refetchInterval: 60_000, staleTime: 60_000 })
  const ids = Object.entries(taskTable).flatMap(([id, { operations }]) =>
    (operations as readonly string[]).includes(operation) ? [id] : [],
  )
  const able = tasks?.tasks.filter(({ id }) => ids.includes(id)).flatMap(({ models }) => models) ?? []
  const rankOf = ({ status }: { status: string }) => usable.indexOf(status)
  const models = data?.models.filter(one => able.includes(one.model_id) && rankOf(one) >= 0) ?? []
  return can('user:write') ? models.toSorted((a, b) => rankOf(a) - rankOf(b))[0]?.model_id : undefined
}
