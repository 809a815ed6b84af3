import { useQuery } from '@tanstack/react-query'
import { tasksQuery, useSession } from '../../api/client.ts'
import { useNames } from '../../api/names.ts'
import type { Searched } from '../../api/searched.ts'
import { useTokenChoice } from '../../api/tokens.ts'
import { Button } from '../../components/button.tsx'
import { type Option, optionsOf, SelectField, TextField } from '../../components/fields.tsx'
import type { Choice } from '../../components/matching.ts'
import { modelOption, taskOption, tokenOption } from '../../components/options.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { jobsText } from '../../text/jobs.ts'

/** The filters of the list by their names in the address. */
const filterNames = ['q', 'status', 'task', 'model_id', 'token_id', 'organization', 'since', 'from', 'until'] as const
type FilterName = (typeof filterNames)[number]
export type Filters = Partial<Record<FilterName, string>>

const statuses = ['pending', 'processing', 'completed', 'failed', 'cancelled']
const { filters: text } = jobsText
/** A link may name what is no longer configured. */
const absent = (chosen: string | undefined, values: readonly Option[]): string[] =>
  !chosen || values.some(one => (typeof one === 'string' ? one : one.id) === chosen) ? [] : [chosen]
/** The value of `since` for the time between `from` and `until`, which are as people type them: `2026-01-31T09:30`. */
const between = 'between'

/** The filters of the list of jobs: what is set is in the address, so that the list can be linked to. */
export function JobFilters({
  filters,
  change,
  organizations,
}: {
  filters: Filters
  change: (changes: Filters) => void
  /** The organizations whose jobs may be listed; undefined: the own one only. */
  organizations: readonly Choice[] | undefined
}) {
  const { can, session } = useSession()
  const { data: tasks } = useQuery(tasksQuery)
  const tokens = useTokenChoice(session.organization.id)
  const names = useNames(session.organization.id, [filters.token_id ?? null])
  const models = [...new Set((tasks?.tasks ?? []).flatMap(task => task.models))].sort()
  const select = (name: FilterName, label: string, values: readonly Option[]) => (
    <div className="min-w-32 flex-1">
      <SelectField
        label={label}
        value={filters[name] ?? ''}
        none={text.any}
        options={[...absent(filters[name], values), ...values]}
        change={value =>
          change({
            [name]: value,
            ...(name === 'since' && value !== between ? { from: undefined, until: undefined } : {}),
          })
        }
      />
    </div>
  )
  const pick = (
    name: FilterName,
    label: string,
    choices: readonly Choice[],
    none: string = text.any,
    search: Partial<Searched<unknown>> = {},
  ) => (
    <div className="min-w-32 flex-1">
      <PickerField
        label={label}
        value={filters[name] ?? ''}
        none={none}
        choices={[...absent(filters[name], choices).map(id => ({ id, name: names.get(id) ?? id })), ...choices]}
        typed={search.typed}
        isCut={search.isCut ?? false}
        change={value =>
          change({
            [name]: value,
            // Prompts are searched, and tokens are known, in the own organization only.
            ...(name === 'organization' ? { q: undefined, token_id: undefined } : {}),
          })
        }
      />
    </div>
  )
  return (
    <fieldset className="mb-4 flex flex-wrap items-end gap-3">
      <legend className="sr-only">{text.label}</legend>
      {select('status', text.status, optionsOf(jobsText.statuses, statuses))}
      {pick(
        'task',
        text.task,
        (tasks?.tasks ?? []).map(({ id }) => taskOption(id)),
      )}
      {pick(
        'model_id',
        text.model,
        models.map(id => modelOption(id)),
      )}
      {can('admin:read') &&
        !filters.organization &&
        pick('token_id', text.token, tokens.page?.tokens.map(tokenOption) ?? [], text.any, tokens)}
      {organizations && pick('organization', text.organization, organizations, text.own)}
      {select('since', text.since, [...optionsOf(text.times), { id: between, name: text.between }])}
      {filters.since === between &&
        (['from', 'until'] as const).map(name => (
          <div key={name} className="min-w-52 flex-1">
            <TextField
              label={text[name]}
              type="datetime-local"
              value={filters[name] ?? ''}
              change={value => change({ [name]: value })}
            />
          </div>
        ))}
      {Object.values(filters).some(Boolean) && (
        <Button
          onClick={() => change(Object.fromEntries(filterNames.map(name => [name, undefined])))}
          label={text.clear}
        />
      )}
    </fieldset>
  )
}

/** The filters that are set in the address. */
export const filtersOf = (params: URLSearchParams): Filters =>
  Object.fromEntries(filterNames.flatMap(name => (params.get(name) ? [[name, params.get(name)]] : [])))

/** The part of a query that a time filter makes. Times are in Unix seconds. */
export function createdQuery(
  { since, from, until }: Filters,
  nowMs: number,
): { created_after?: number; created_before?: number } {
  if (since === undefined) return {}
  if (since !== between) return { created_after: Math.floor(nowMs / 1_000) - Number(since) }
  const seconds = (text = '') => Math.floor(Date.parse(text) / 1_000) || undefined
  return { created_after: seconds(from), created_before: seconds(until) }
}
