import { Link, useLocation } from 'wouter'
import { useSession } from '../api/client.ts'
import { useAttention } from '../api/use-attention.ts'
import { isAt, type Page, pages } from '../pages.ts'
import { attentionText } from '../text/attention.ts'
import { shellText } from '../text/shell.ts'

/** The pages that the session may use: the first one, then the groups with theirs. */
export function Navigation() {
  const { can } = useSession()
  const offered = pages.filter(page => can(page.scope))
  const groups = [...new Set(offered.map(({ group }) => group))]
  return (
    <div className="flex-1 space-y-4">
      {groups.map(group => (
        <div key={group ?? ''}>
          {group && <h2 className="text-muted px-2 pb-1 text-xs font-medium">{shellText.groups[group]}</h2>}
          <ul aria-label={group && shellText.groups[group]} className="space-y-0.5">
            {offered
              .filter(page => page.group === group)
              .map(page => (
                <Entry key={page.path} page={page} />
              ))}
          </ul>
        </div>
      ))}
    </div>
  )
}

/** How many things need attention. */
function AttentionBadge() {
  const all = useAttention()
  if (all.length === 0) return null
  const look = all.some(({ kind }) => kind === 'bad') ? 'bg-bad-soft text-bad' : 'bg-warning-soft text-warning'
  return (
    <>
      <span aria-hidden className={`rounded-full px-1.5 text-xs font-medium tabular-nums ${look}`}>
        {all.length}
      </span>
      <span className="sr-only">{attentionText.badge(all.length)}</span>
    </>
  )
}

function Entry({ page }: { page: Page }) {
  const [location] = useLocation()
  const { path, name, icon: Icon, Content } = page
  const current = isAt(page, location)
  return (
    <li>
      <Link
        href={path}
        // Before the click: whether it can be loaded is said when it is opened.
        onPointerEnter={() => void Content.load().catch(() => {})}
        aria-current={current ? 'page' : undefined}
        className={`flex min-h-9 items-center gap-2.5 rounded-md px-2 md:min-h-8 ${current ? 'bg-accent-soft text-accent font-medium' : 'text-muted hover:bg-raised hover:text-text'}`}
      >
        <Icon aria-hidden className="size-4 shrink-0" />
        <span className="flex-1">{name}</span>
        {path === '/' && <AttentionBadge />}
      </Link>
    </li>
  )
}
