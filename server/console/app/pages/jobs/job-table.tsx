import { useCallback, useDeferredValue, useRef } from 'react'
import type { Schema } from '../../api/client.ts'
import { useRowKeys } from '../../components/row-keys.ts'
import { useAddress } from '../../components/use-address.ts'
import { jobsText } from '../../text/jobs.ts'
import { toggled } from './job-choice.ts'
import { JobRow } from './job-row.tsx'

interface JobTableProps {
  jobs: readonly Schema<'ListedJob'>[]
  chosen: ReadonlySet<string>
  setChosen: (change: (now: ReadonlySet<string>) => ReadonlySet<string>) => void
  /** Names by ids; undefined where there is no such column. */
  tokens: ReadonlyMap<string, string> | undefined
  organizations: ReadonlyMap<string, string> | undefined
}

const { columns: names } = jobsText
const head = 'px-2 py-2 font-medium'

/**
 * The jobs of a page in rows. The arrow keys go from row to row, and take the job that is open beside the list along; Escape
 * closes it.
 */
export function JobTable({ jobs: newest, chosen, setChosen, tokens, organizations }: JobTableProps) {
  const table = useRef<HTMLTableElement>(null)
  // The rows are drawn a few at a time, so that a page of live jobs never keeps the browser busy for long.
  const jobs = useDeferredValue(newest)
  const [params, change] = useAddress()
  const open = params.get('job') ?? undefined
  const rest = new URLSearchParams(params)
  rest.delete('job')
  const query = rest.toString()
  const choose = useCallback((id: string) => setChosen(now => toggled(now, id)), [setChosen])
  const allChosen = jobs.every(({ id }) => chosen.has(id))

  useRowKeys(
    table,
    jobs.map(({ id }) => id),
    open,
    id => change({ job: id }),
  )
  return (
    <div className="border-line bg-surface overflow-x-auto rounded-lg border">
      <table
        ref={table}
        aria-label={jobsText.list}
        className={`w-full text-left max-lg:block ${open === undefined ? '' : '[&_.aside]:hidden'}`}
      >
        <thead className="text-muted border-line border-b text-xs max-lg:block">
          <tr className="max-lg:flex max-lg:items-center">
            <th scope="col" className={`${head} w-8`}>
              <input
                type="checkbox"
                aria-label={jobsText.chooseAll}
                checked={allChosen}
                onChange={() => setChosen(() => new Set(allChosen ? [] : jobs.map(({ id }) => id)))}
                className="accent-accent block size-4"
              />
            </th>
            <th scope="col" className={head}>
              {names.job}
            </th>
            {[
              { name: names.status },
              { name: names.model },
              ...(organizations ? [{ name: names.organization }] : []),
              { name: names.used, look: 'aside text-right' },
              { name: names.firstToken, look: 'aside text-right whitespace-nowrap' },
              { name: names.duration, look: 'text-right' },
              { name: names.cost, look: 'aside text-right' },
              ...(tokens ? [{ name: names.token, look: 'aside' }] : []),
              { name: names.created },
            ].map(({ name, look = '' }) => (
              <th key={name} scope="col" className={`${head} max-lg:sr-only ${look}`}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-line divide-y max-lg:block">
          {jobs.map(job => (
            <JobRow
              key={job.id}
              job={job}
              isOpen={job.id === open}
              isChosen={chosen.has(job.id)}
              choose={choose}
              query={query}
              token={tokens && (tokens.get(job.token_id) ?? '–')}
              organization={organizations && (organizations.get(job.organization_id) ?? job.organization_id)}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}
