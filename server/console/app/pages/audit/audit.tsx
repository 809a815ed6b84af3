import { keepPreviousData } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, at, useAnswer, useSession } from '../../api/client.ts'
import { useNames } from '../../api/names.ts'
import { useOrganizations } from '../../api/organizations.ts'
import { Button } from '../../components/button.tsx'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { organizationOption } from '../../components/options.tsx'
import { Empty, PageHeading, Queried } from '../../components/page.tsx'
import { PanelTable, RowLink, WithPanel } from '../../components/panel.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { columnsOf } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { auditText as text } from '../../text/audit.ts'
import { shellText } from '../../text/shell.ts'
import { EntryPanel } from './entry-panel.tsx'
import { actionName, actorName, type Entry, type Names, namelessIn, targetName } from './names.ts'

const columnsWith = (names: Names) =>
  columnsOf<Entry, keyof typeof text.columns>(text.columns, {
    action: ({ id, action }) => (
      <RowLink param="entry" id={id}>
        {actionName(action)}
      </RowLink>
    ),
    what: entry => <span className="break-all">{targetName(entry, names)}</span>,
    who: ({ actor }) => actorName(actor, names),
    from: { aside: true, show: ({ actor }) => actor.address ?? '–' },
    time: ({ at: when }) => <Time at={when} />,
  })

/** Seconds, a whole number of minutes: the same query is not read again for a time that moves. */
const sinceOf = (period: string): number => Math.floor(Date.now() / 60_000) * 60 - Number(period)

const filterNames = ['action', 'since', 'target', 'organization'] as const

/** The audit log of an organization, newest first, with one entry beside the list. */
export default function AuditPage() {
  const [params, change] = useAddress('push')
  const { session, ownerCan } = useSession()
  const owner = ownerCan('admin:read')
  const organization = (owner && params.get('organization')) || session.organization.id
  const action = params.get('action') ?? undefined
  const target = params.get('target') ?? undefined
  const since = Object.keys(text.filters.times).find(one => one === params.get('since'))
  const after = params.get('after') ?? undefined
  const open = params.get('entry') ?? undefined
  const query = useAnswer(
    ['audit', organization, action, target, since, after],
    () => {
      const asked = { limit: 50, action, target, since: since && sinceOf(since), after }
      return api.GET('/api/organizations/{organization}/audit', at({ organization }, asked as { limit: number }))
    },
    { placeholderData: keepPreviousData },
  )
  const names = useNames(organization, query.data?.entries.flatMap(namelessIn) ?? [])
  const columns = useMemo(() => columnsWith(names), [names])
  const filter = (changes: Record<string, string | undefined>) =>
    change({ ...changes, after: undefined, entry: undefined })
  const isFiltered = action !== undefined || target !== undefined || since !== undefined
  return (
    <>
      <PageHeading title={shellText.pages.audit} about={text.about} />
      <WithPanel
        panel={
          open !== undefined &&
          query.data && (
            <EntryPanel
              key={open}
              entry={query.data.entries.find(({ id }) => id === open)}
              names={names}
              onlyThis={id => filter({ target: id, action: undefined, since: undefined })}
              close={() => change({ entry: undefined })}
            />
          )
        }
      >
        <fieldset className="mb-4 flex flex-wrap items-end gap-3">
          <legend className="sr-only">{text.filters.label}</legend>
          <SelectField
            label={text.filters.action}
            value={action ?? ''}
            none={text.filters.any}
            change={one => filter({ action: one })}
            options={[...(action === undefined || action in text.actions ? [] : [action]), ...optionsOf(text.actions)]}
          />
          <SelectField
            label={text.filters.since}
            value={since ?? ''}
            none={text.filters.any}
            change={one => filter({ since: one })}
            options={optionsOf(text.filters.times)}
          />
          {owner && (
            <OrganizationField
              value={organization}
              change={one => filter({ organization: one === session.organization.id ? undefined : one })}
            />
          )}
          {isFiltered && (
            <Button
              onClick={() => filter(Object.fromEntries(filterNames.map(name => [name, undefined])))}
              label={text.filters.clear}
            />
          )}
        </fieldset>
        {target !== undefined && (
          <p className="text-muted mb-3">
            {text.filters.target} <code className="font-mono text-xs">{target}</code>
          </p>
        )}
        <Queried query={query} lines={6}>
          {({ entries, next_cursor }) => (
            <PanelTable
              label={text.list}
              param="entry"
              columns={columns}
              rows={entries}
              next={next_cursor}
              names={text}
            >
              <Empty title={isFiltered || after !== undefined ? text.noMatch : text.none} />
            </PanelTable>
          )}
        </Queried>
      </WithPanel>
    </>
  )
}

/** The organization whose log is read, for the owner of the machine. */
function OrganizationField({ value, change }: { value: string; change: (id: string) => void }) {
  const { data: all = [] } = useOrganizations()
  if (all.length < 2) return null
  return (
    <div className="min-w-48">
      <PickerField
        label={text.filters.organization}
        value={value}
        change={change}
        choices={all.map(organizationOption)}
      />
    </div>
  )
}
