import { useQuery } from '@tanstack/react-query'
import { api, at, dataOf, type Schema, usePages, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button, ButtonLink } from '../../components/button.tsx'
import { compareLines, shownLines } from '../../components/difference/compare.ts'
import { LineDifference } from '../../components/difference/text-difference.tsx'
import { SelectField } from '../../components/fields.tsx'
import { BackLink, Empty, MoreButton, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { workflowsText } from '../../text/workflows.ts'
import { sourceOf } from '../editor/document/source.ts'

const readVersion = async (id: string, version: number) =>
  (await dataOf(api.GET('/api/workflows/{id}', at({ id }, { version })))).workflow

/** The versions of a workflow: compare two, restore one. */
export default function VersionList({ id }: { id: string }) {
  useBeginning()
  const query = usePages(['workflows', 'versions', id], after =>
    api.GET('/api/workflows/{id}/versions', at({ id }, { limit: 100, after })),
  )
  return (
    <Queried query={query} lines={5}>
      {({ pages }) => {
        const versions = pages.flatMap(page => page.versions)
        return (
          <>
            <BackLink page="workflows" />
            <PageHeading
              title={workflowsText.versionsOf(versions[0]?.name ?? '')}
              actions={<ButtonLink href={`/workflows/${id}`} label={workflowsText.edit} />}
            />
            <Compare id={id} versions={versions} />
            <MoreButton query={query} />
          </>
        )
      }}
    </Queried>
  )
}

function Compare({ id, versions }: { id: string; versions: Schema<'WorkflowVersionPage'>['versions'] }) {
  const newest = versions[0]!.version
  const [params, change] = useAddress()
  const older = Number(params.get('older')) || Math.max(1, newest - 1)
  const newer = Number(params.get('newer')) || newest
  const { can } = useSession()
  const restore = useAction(
    async (version: number) => {
      const { name, description, tags, region, timeout, on_failure, budget, concurrency, parameters, dag } =
        await readVersion(id, version)
      const body = { name, description, tags, region, timeout, on_failure, budget, concurrency, parameters, dag: dag! }
      return (await dataOf(api.PUT('/api/workflows/{id}', { params: { path: { id } }, body }))).workflow
    },
    (made, version) => {
      change({ older: String(newest), newer: String(made.version) })
      return workflowsText.restored(version, made.version)
    },
    ['workflows'],
  )
  // A link may name versions that are further down in the list.
  const offered = [...new Set([...versions.map(({ version }) => version), older, newer])]
  const options = offered.map(version => ({ id: String(version), name: workflowsText.versionNumber(version) }))
  return (
    <div className="grid gap-6 lg:grid-cols-[20rem_1fr]">
      <Section title={workflowsText.versions}>
        <ul className="border-line bg-surface divide-line divide-y rounded-lg border">
          {versions.map(({ version, created_at }) => (
            <li key={version} className="flex flex-wrap items-center gap-2 px-3 py-2">
              <span className="font-medium">{workflowsText.versionNumber(version)}</span>
              <span className="text-muted flex-1 text-xs">
                <Time at={created_at} />
              </span>
              {version === newest ? (
                <Badge kind="good">{workflowsText.current}</Badge>
              ) : (
                can('user:write') && (
                  <Button
                    small
                    busy={restore.isPending}
                    aria-label={workflowsText.restoreOf(version)}
                    onClick={() => restore.mutate(version)}
                    label={workflowsText.restore}
                  />
                )
              )}
            </li>
          ))}
        </ul>
      </Section>
      {versions.length === 1 ? (
        <Empty title={workflowsText.onlyVersion}>{workflowsText.onlyVersionNext}</Empty>
      ) : (
        <Section title={workflowsText.compared(older, newer)}>
          <div className="mb-3 grid grid-cols-2 gap-3">
            <SelectField
              label={workflowsText.older}
              value={String(older)}
              options={options}
              change={version => change({ older: version })}
            />
            <SelectField
              label={workflowsText.newer}
              value={String(newer)}
              options={options}
              change={version => change({ newer: version })}
            />
          </div>
          <Difference id={id} older={older} newer={newer} />
        </Section>
      )}
    </div>
  )
}

function Difference({ id, older, newer }: { id: string; older: number; newer: number }) {
  const query = useQuery({
    queryKey: ['workflows', 'compare', id, older, newer],
    // A stored version never changes.
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const [a, b] = await Promise.all([readVersion(id, older), readVersion(id, newer)])
      return shownLines(compareLines(sourceOf(a), sourceOf(b)))
    },
  })
  return (
    <Queried query={query} lines={8}>
      {lines =>
        lines.every(line => typeof line === 'number') ? (
          <p>{workflowsText.same}</p>
        ) : (
          <LineDifference label={workflowsText.compared(older, newer)} lines={lines} />
        )
      }
    </Queried>
  )
}
