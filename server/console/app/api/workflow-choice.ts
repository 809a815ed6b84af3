import { api } from './client.ts'
import { useSearched } from './searched.ts'

/** The stored workflows to choose from, last changed first. */
export const useWorkflowChoice = () =>
  useSearched(['workflows', 'choice'], page => api.GET('/api/workflows', { params: { query: page } }))
