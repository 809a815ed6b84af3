import { useQuery } from '@tanstack/react-query'
import { api, dataOf } from '../../api/client.ts'
import { useSession } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { SelectField } from '../../components/choice.tsx'
import { jobsText } from '../../text/jobs.ts'

/** The filters of the list by their names in the address. */
export const filterNames = ['status', 'task', 'model_id', 'token_id', 'since'] as const
export type FilterName = (typeof filterNames)[number]
export type Filters = Partial<Record<FilterName, string>>

const statuses = ['pending', 'processing', 'completed', 'failed', 'cancelled']
const { filters: text } = jobsText
const any = { value: '', name: text.any }

/** The filters of the list of jobs: what is set is in the address, so that the list can be linked to. */
export function JobFilters({ filters, change }: { filters: Filters; change: (filters: Filters) => void }) {
  const { session, can } = useSession()
  const { data: tasks } = useQuery({
    queryKey: ['tasks'],
    queryFn: () => dataOf(api.GET('/api/tasks')),
    staleTime: 300_000,
  })
  const organization = session.organization.id
  const { data: tokens } = useQuery({
    queryKey: ['tokens', organization],
    queryFn: () =>
      dataOf(
        api.GET('/api/organizations/{organization}/tokens', {
          params: { path: { organization }, query: { limit: 100 } },
        }),
      ),
    enabled: can('admin:read'),
    staleTime: 60_000,
  })
  const models = [...new Set((tasks?.tasks ?? []).flatMap(task => task.models))].sort()
  const of = (values: readonly { value: string; name: string }[], name: FilterName) => {
    const chosen = filters[name]
    const known = chosen === undefined || values.some(({ value }) => value === chosen)
    // A link may name what is no longer configured.
    return [any, ...(known ? [] : [{ value: chosen, name: chosen }]), ...values]
  }
  const select = (name: FilterName, label: string, values: readonly { value: string; name: string }[]) => (
    <div className="min-w-32 flex-1">
      <SelectField
        label={label}
        value={filters[name] ?? ''}
        options={of(values, name)}
        onChange={event => change({ ...filters, [name]: event.target.value || undefined })}
      />
    </div>
  )
  return (
    <fieldset className="mb-4 flex flex-wrap items-end gap-3">
      <legend className="sr-only">{text.label}</legend>
      {select(
        'status',
        text.status,
        statuses.map(value => ({ value, name: jobsText.statuses[value]! })),
      )}
      {select(
        'task',
        text.task,
        (tasks?.tasks ?? []).map(({ id, title }) => ({ value: id, name: title })),
      )}
      {select(
        'model_id',
        text.model,
        models.map(value => ({ value, name: value })),
      )}
      {can('admin:read') &&
        select(
          'token_id',
          text.token,
          (tokens?.tokens ?? []).map(({ id, name }) => ({ value: id, name })),
        )}
      {select(
        'since',
        text.since,
        Object.entries(text.times).map(([value, name]) => ({ value, name })),
      )}
      {Object.values(filters).some(Boolean) && <Button onClick={() => change({})}>{text.clear}</Button>}
    </fieldset>
  )
}
