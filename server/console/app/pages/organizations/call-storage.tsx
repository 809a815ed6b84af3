import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { organizationsText } from '../../text/organizations.ts'

const text = organizationsText.callStorage
type CallStorage = Schema<'Organization'>['call_storage']

/** Whether conversations of an organization are kept on the server, with what that means. */
export function CallStorageSetting({ organization }: { organization: Schema<'Organization'> }) {
  const { id, name, call_storage: stored } = organization
  const { can } = useSession()
  const change = useAction(
    (chosen: CallStorage) =>
      dataOf(
        api.PATCH('/api/organizations/{organization}', {
          params: { path: { organization: id } },
          body: { call_storage: chosen },
        }),
      ),
    (_, chosen) => text.changed[chosen](name),
    ['organizations'],
    ['chat'],
  )
  return (
    <div className="bg-surface border-line space-y-2 rounded-lg border p-4">
      <SelectField
        label={text.label}
        options={optionsOf(text.options)}
        value={change.isPending ? change.variables : stored}
        disabled={!can('admin:write') || change.isPending}
        change={chosen => change.mutate(chosen as CallStorage)}
      />
      <p className="text-muted text-xs">{text.means[stored]}</p>
    </div>
  )
}
