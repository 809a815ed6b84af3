import { type SyntheticEvent, useState } from 'react'
import { useLocation } from 'wouter'
import { SearchField } from '../../components/search-field.tsx'
import { jobsText } from '../../text/jobs.ts'

/** The page of an id that a person has, such as one from a log: of a job, a request or an execution. */
function pathOf(id: string): string {
  if (id.startsWith('exec_')) return `/executions/${id}`
  return `/jobs/${id.replace(/^q_/, 'job_')}`
}

/** Opens a job by its id. */
export function FindJob() {
  const [id, setId] = useState('')
  const [, go] = useLocation()
  const open = (event: SyntheticEvent) => {
    event.preventDefault()
    if (id.trim() !== '') go(pathOf(id.trim()))
  }
  return (
    <form onSubmit={open} className="mb-3 flex">
      <SearchField value={id} change={setId} label={jobsText.find} />
    </form>
  )
}
