// Does as a person with a browser: follows redirects with cookies and fills in forms, until the client is reached.
const attribute = (tag, name) => new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1]
const unescaped = (text) => text.replace(/&quot;/g, '"').replace(/&#x27;/g, "'").replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')

// Returns the URL to which the client's user returns, which begins with `back`.
export async function browse(address, back, user) {
  const cookies = new Map() // by origin, then by name
  const send = async (url, options = {}) => {
    const jar = cookies.get(url.origin) ?? new Map()
    cookies.set(url.origin, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...options.headers, ...(cookie && { cookie }) }
    const answer = await fetch(url, { ...options, headers, redirect: 'manual' })
    for (const line of answer.headers.getSetCookie()) {
      const [pair] = line.split(';')
      const at = pair.indexOf('=')
      if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(pair.slice(0, at))
      else jar.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return answer
  }
  let url = new URL(address)
  let answer = await send(url)
  for (let step = 0; step < 20; step++) {
    const location = answer.headers.get('location')
    if (location) {
      url = new URL(location, url)
      if (url.href.startsWith(back)) return url
      answer = await send(url)
      continue
    }
    const page = await answer.text()
    const form = /<form[^>]* action="([^"]*)"/s.exec(page)
    if (!form) throw new Error(`${answer.status} ${page}`)
    const fields = new URLSearchParams()
    for (const [tag] of page.matchAll(/<input[^>]*>/g)) {
      const name = attribute(tag, 'name')
      if (name) fields.set(name, unescaped(attribute(tag, 'value') ?? user))
    }
    if (page.includes('name="decision"')) fields.set('decision', 'allow')
    url = new URL(unescaped(form[1]), url)
    answer = await send(url, { method: 'POST', body: fields, headers: { origin: url.origin } })
  }
  throw new Error('The sign-in has no end.')
}
