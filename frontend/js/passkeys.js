// Passkeys: <form data-passkey="create|get" data-options="…"> asks the browser before it is sent; without options it asks the
// form's own address for them. What the browser answers goes into the hidden field `credential`.
import { $, on, sentence, toast } from './dom.js';

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
const known = (list) => list?.map((each) => ({ ...each, id: bytes(each.id) }));

// The options and the answer are JSON with base64url in place of bytes; older browsers cannot convert them by themselves.
function readable(options) {
  const key = { ...options.publicKey, challenge: bytes(options.publicKey.challenge) };
  if (key.user) key.user = { ...key.user, id: bytes(key.user.id) };
  if (key.excludeCredentials) key.excludeCredentials = known(key.excludeCredentials);
  if (key.allowCredentials) key.allowCredentials = known(key.allowCredentials);
  return key;
}

function sendable({ id, rawId, type, response, authenticatorAttachment, getClientExtensionResults }, credential) {
  const answer = { clientDataJSON: text(response.clientDataJSON) };
  for (const name of ['attestationObject', 'authenticatorData', 'signature', 'userHandle'])
    if (response[name]) answer[name] = text(response[name]);
  if (response.getTransports) answer.transports = response.getTransports();
  return { id, rawId: text(rawId), type, authenticatorAttachment, response: answer, clientExtensionResults: getClientExtensionResults.call(credential) };
}

async function ceremony(form) {
  const options = form.dataset.options
    ? JSON.parse(form.dataset.options)
    : (await (await fetch(form.action, { headers: { Accept: 'application/json', 'X-Requested-With': 'XMLHttpRequest' } })).json()).request_options;
  const publicKey = readable(options);
  if (form.dataset.passkey === 'get') return navigator.credentials.get({ publicKey });
  const alone = $('[name=passwordless]', form)?.checked ?? false;
  publicKey.authenticatorSelection = { ...publicKey.authenticatorSelection, residentKey: alone ? 'required' : 'discouraged', requireResidentKey: alone, ...(alone && { userVerification: 'required' }) };
  return navigator.credentials.create({ publicKey });
}

on('submit', async (event) => {
  const form = event.target;
  if (!form.dataset.passkey) return;
  event.preventDefault();
  try {
    const credential = await ceremony(form);
    $('[name=credential]', form).value = JSON.stringify(sendable(credential, credential));
    form.submit();
  } catch (error) {
    toast(`${sentence('passkey')} (${error.name})`);
  }
});
