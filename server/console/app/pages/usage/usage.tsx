import { Download } from 'lucide-react'
import { useOwnUse, useSession } from '../../api/client.ts'
import { useOrganizations } from '../../api/organizations.ts'
import { useAction } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { organizationOption } from '../../components/options.tsx'
import { Below, Notice, PageHeading, Queried } from '../../components/page.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { useAddress } from '../../components/use-address.ts'
import { shellText } from '../../text/shell.ts'
import { usageText } from '../../text/usage.ts'
import { LimitsLeft, OrganizationLimits } from './limits.tsx'
import { downloadCsv } from './read.ts'
import type { Group, Period } from './report.ts'
import { OrganizationUsage, UsageReport, useReport } from './usage-report.tsx'

const periods = Object.keys(usageText.periods) as Period[]
const groups = Object.keys(usageText.groups) as Group[]

/** What was used and what it cost, and what is left of the limits. The choice is in the address. */
export default function UsagePage() {
  const { session, can, ownerCan } = useSession()
  const [params, change] = useAddress()
  const mayRead = can('admin:read')
  const owner = ownerCan('admin:read')
  const organizations = useOrganizations()

  const period = periods.find(one => one === params.get('period')) ?? 'month'
  const offered = groups.filter(one => owner || one !== 'organization')
  const by = offered.find(one => one === params.get('by')) ?? 'model'
  const organization = (owner && params.get('organization')) || session.organization.id
  const name = organizations.data?.find(({ id }) => id === organization)?.name ?? session.organization.name

  // What is left is known of the own organization and token only.
  const showsLeft = organization === session.organization.id || by === 'organization'
  const reportOf = mayRead && by !== 'organization' ? { organization, period, by } : undefined
  const report = useReport(reportOf)
  const left = useOwnUse({ refetchInterval: 15_000, enabled: showsLeft })

  const { mutate: save, isPending: saving } = useAction(
    () => downloadCsv({ organization, period, by }),
    () => usageText.csvDone,
  )

  return (
    <>
      <PageHeading
        title={shellText.pages.usage}
        actions={
          mayRead &&
          by !== 'organization' && <Button icon={Download} busy={saving} onClick={() => save()} label={usageText.csv} />
        }
        about={usageText.about}
      />
      {mayRead ? (
        <>
          <div className="mb-4 grid grid-cols-2 gap-3 sm:flex sm:flex-wrap">
            <SelectField
              label={usageText.period}
              value={period}
              change={one => change({ period: one })}
              options={optionsOf(usageText.periods)}
            />
            <SelectField
              label={usageText.by}
              value={by}
              change={one => change({ by: one })}
              options={optionsOf(usageText.groups, offered)}
            />
            {owner && by !== 'organization' && (organizations.data?.length ?? 0) > 1 && (
              <div className="min-w-48">
                <PickerField
                  label={usageText.organization}
                  value={organization}
                  change={one => change({ organization: one })}
                  choices={organizations.data!.map(organizationOption)}
                />
              </div>
            )}
          </div>
          {reportOf ? (
            <UsageReport query={report} {...reportOf} />
          ) : (
            <Queried query={organizations}>{all => <OrganizationUsage period={period} organizations={all} />}</Queried>
          )}
        </>
      ) : (
        <Notice kind="info" className="mb-6">
          {usageText.needsAdmin}
        </Notice>
      )}
      <Below isSettled={!report.isLoading}>
        {showsLeft && <LimitsLeft query={left} />}
        {reportOf && (
          <Below isSettled={!left.isLoading}>
            <OrganizationLimits organization={organization} name={name} />
          </Below>
        )}
      </Below>
    </>
  )
}
